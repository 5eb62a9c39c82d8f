/** JSON that programs exchange on disk: bounded, checked, and with a checksum. {@link io.sparklog.json.Damaged} reports a broken rule. */
package io.sparklog.json;
