package io.sparklog.spec;

import com.fasterxml.jackson.core.JsonLocation;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.io.JsonEOFException;
import java.io.IOException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The fault of a text that is not JSON, in words. The parser's own words name its classes and settings. */
public final class JsonFault {
  private static final Pattern DUPLICATE = Pattern.compile("Duplicate field '(.*)'");

  private JsonFault() {}

  /** In words that follow "it is not JSON: ". */
  public static String why(IOException error) {
    if (error instanceof JsonEOFException) {
      return "it breaks off";
    }
    if (!(error instanceof JsonProcessingException parsing) || parsing.getLocation() == null) {
      return "it cannot be parsed";
    }
    Matcher duplicate = DUPLICATE.matcher(parsing.getOriginalMessage());
    if (duplicate.matches()) {
      return "the name " + Shown.value(duplicate.group(1)) + " is there twice";
    }
    JsonLocation at = parsing.getLocation();
    return "it is wrong at character " + at.getColumnNr() + (at.getLineNr() > 1 ? " of line " + at.getLineNr() : "");
  }
}
