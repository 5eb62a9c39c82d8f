/** JSON that programs exchange on disk: bounded, checked, and with a checksum. {@link io.sparklog.json.Damaged} says what breaks a rule. */
package io.sparklog.json;
