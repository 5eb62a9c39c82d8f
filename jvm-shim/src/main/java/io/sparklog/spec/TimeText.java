package io.sparklog.spec;

import java.time.DateTimeException;
import java.time.LocalDate;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.util.OptionalLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A time as a user writes it: milliseconds since 1970-01-01 UTC, or ISO 8601, in UTC without a zone. docs/guide/reading-and-writing.md has
 * the grammar; {@code sparklog/arguments.py} has the same one.
 */
public final class TimeText {
  /** The forms of a text that is a time, in words. */
  public static final String EXPECTED = "milliseconds since 1970-01-01 UTC (a number of ten digits counts seconds: append 000), or "
      + "ISO 8601 as 2024-05-01, 2024-05-01T12:00Z or 2024-05-01 12:00:30.5+02:00, in UTC without a zone";

  private static final Pattern NUMBER = Pattern.compile("-?[0-9]{1,19}");

  /** Seconds since 1970-01-01 UTC have ten digits from 2001 to 2286. Milliseconds of ten digits are in the first months of 1970. */
  private static final long LEAST_SECONDS = 1_000_000_000L;

  private static final long MOST_SECONDS = 9_999_999_999L;

  private static final Pattern ISO_8601 = Pattern
      .compile("([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[Tt ]([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:[.]([0-9]{1,9}))?)?)?"
          + "(?: ?(?:[Zz]|([+-])([0-9]{2})(?::?([0-9]{2}))?))?)?");

  private static final int MOST_HOURS = 23;

  private static final int MOST_MINUTES = 59;

  private TimeText() {}

  /** The time in milliseconds since 1970-01-01 UTC, rounded up; empty if the text is not a time. */
  public static OptionalLong millis(String text) {
    String time = text.trim();
    try {
      if (NUMBER.matcher(time).matches()) {
        return millis(Long.parseLong(time));
      }
      Matcher found = ISO_8601.matcher(time);
      return found.matches() ? millis(found) : OptionalLong.empty();
    } catch (NumberFormatException | DateTimeException e) {
      return OptionalLong.empty();
    }
  }

  /** The time of a number; empty for a number of ten digits, which counts seconds: taken as milliseconds, it would be a time in 1970. */
  public static OptionalLong millis(long number) {
    return number >= LEAST_SECONDS && number <= MOST_SECONDS ? OptionalLong.empty() : OptionalLong.of(number);
  }

  private static OptionalLong millis(Matcher found) {
    int zoneHours = number(found.group(7));
    int zoneMinutes = number(found.group(8));
    LocalDate date = LocalDate.parse(found.group(1));
    if (zoneHours > MOST_HOURS || zoneMinutes > MOST_MINUTES || date.getYear() == 0) {
      return OptionalLong.empty();
    }
    LocalTime time = LocalTime.of(number(found.group(2)), number(found.group(3)), number(found.group(4)));
    String fraction = found.group(5) == null ? "" : found.group(5);
    long nanos = number((fraction + "0".repeat(9)).substring(0, 9));
    long ahead = (zoneHours * 60L + zoneMinutes) * 60_000 * ("-".equals(found.group(6)) ? -1 : 1);
    long seconds = date.atTime(time).toEpochSecond(ZoneOffset.UTC);
    return OptionalLong.of(seconds * 1000 - ahead - Math.floorDiv(-nanos, 1_000_000L));
  }

  private static int number(String digits) {
    return digits == null ? 0 : Integer.parseInt(digits);
  }
}
