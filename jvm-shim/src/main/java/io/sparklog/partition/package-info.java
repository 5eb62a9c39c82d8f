/** Which partition a record goes to. FORMAT.md section 13. */
package io.sparklog.partition;
