package io.sparklog.kit;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * Runs commands of {@link LogTool} in one JVM, each with a root that knows nothing of the commands before.
 *
 * <p>Each line of the input is a JSON array of words. Its answer is a line of JSON: {@code status}, {@code out}, {@code err}.
 */
public final class WarmLogTool {
  private WarmLogTool() {}

  public static void main(String[] none) throws IOException {
    ObjectMapper json = new ObjectMapper();
    PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      ByteArrayOutputStream err = new ByteArrayOutputStream();
      PrintStream errors = new PrintStream(err, true, StandardCharsets.UTF_8);
      System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
      System.setErr(errors);
      int status = 0;
      try {
        LogTool.main(json.readValue(line, String[].class));
      } catch (Throwable e) { // An error that would end a process of its own must not end this one.
        e.printStackTrace(errors);
        status = 1;
      }
      System.out.flush();
      answers.println(json.writeValueAsString(
          Map.of("status", status, "out", out.toString(StandardCharsets.UTF_8), "err", err.toString(StandardCharsets.UTF_8))));
    }
  }
}
