package io.sparklog.storage;

import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;

/**
 * The files of a disk as a store behind a network keeps them, such as S3: each question is a request, which is noted, and looks are spared.
 * A test can ask that requests are made at once: each waits until enough of them are under way.
 */
public final class FarStore {
  private static final int WAIT_S = 120;
  private static final Set<String> REQUESTS = Set.of("rootExists", "exists", "above", "holdsFiles", "list", "listing", "read", "tag",
      "modifiedMs", "bytes", "lengths", "open", "putIfAbsent", "create", "delete", "deleteAll");

  private final LogStore real;
  private final Requests requests;
  private final List<String> made = Collections.synchronizedList(new ArrayList<>());
  private volatile Pattern together = Pattern.compile("");
  private volatile CountDownLatch underWay = new CountDownLatch(0);
  private volatile Pattern failing;

  public FarStore(String root, int requestsMax) {
    this.real = Stores.open(root);
    this.requests = new Requests(requestsMax);
  }

  /** The requests so far, as {@code read _partlog/t/…}, from now on without those. */
  public List<String> take() {
    List<String> taken = List.copyOf(made);
    made.clear();
    return taken;
  }

  /** From now on, the first requests that match a pattern are answered only when {@code count} of them are under way. */
  public void awaitAtOnce(int count, String pattern) {
    together = Pattern.compile(pattern);
    underWay = new CountDownLatch(count);
  }

  /** Waits until as many requests are under way as {@link #awaitAtOnce} asked for. */
  public void awaitUnderWay() throws IOException, InterruptedException {
    if (!underWay.await(WAIT_S, TimeUnit.SECONDS)) {
      throw new IOException(underWay.getCount() + " requests more were to be made: " + made);
    }
  }

  /** From now on, requests that match a pattern fail. */
  public void fail(String pattern) {
    failing = Pattern.compile(pattern);
  }

  public LogStore store() {
    return (LogStore) Proxy.newProxyInstance(LogStore.class.getClassLoader(), new Class<?>[] {LogStore.class},
        (proxy, method, arguments) -> switch (method.getName()) {
          case "isRemote" -> true;
          case "hasFolders" -> false;
          case "requests" -> requests;
          default -> asked(method, arguments);
        });
  }

  private Object asked(Method method, Object[] arguments) throws Throwable {
    if (REQUESTS.contains(method.getName())) {
      request(method.getName() + " " + (arguments == null ? "" : arguments[0]));
    }
    if (method.getName().equals("listing")) {
      return listing((String) arguments[0]);
    }
    if (method.getName().equals("open") && arguments.length == 2) {
      return real.open((String) arguments[0]);
    }
    try {
      Object answer = method.invoke(real, arguments);
      return method.getName().equals("create") ? uploaded((String) arguments[0], (FileAppender) answer) : answer;
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }

  /** A file whose bytes are sent when it is synced: a request. */
  private FileAppender uploaded(String name, FileAppender file) {
    return (FileAppender) Proxy.newProxyInstance(FileAppender.class.getClassLoader(), new Class<?>[] {FileAppender.class},
        (proxy, method, arguments) -> {
          if (method.getName().equals("sync")) {
            request("sync " + name);
          }
          try {
            return method.invoke(file, arguments);
          } catch (InvocationTargetException e) {
            throw e.getCause();
          }
        });
  }

  private void request(String request) throws IOException, InterruptedException {
    made.add(request);
    if (failing != null && failing.matcher(request).find()) {
      throw new IOException("the store does not " + request);
    }
    if (together.matcher(request).find()) {
      CountDownLatch wanted = underWay;
      wanted.countDown();
      if (!wanted.await(WAIT_S, TimeUnit.SECONDS)) {
        throw new IOException(wanted.getCount() + " requests more were to be made at once with " + request + ": " + made);
      }
    }
  }

  private ReadStore.Listing listing(String folder) throws IOException {
    Map<String, ReadStore.Listed> listed = new HashMap<>();
    for (String name : real.list(folder)) {
      String file = folder + "/" + name;
      try {
        listed.put(name, new ReadStore.Listed(real.bytes(file), real.modifiedMs(file), real.tag(file).orElseThrow()));
      } catch (UnfitFileException isFolder) {
        continue;
      }
    }
    return new ReadStore.Listing(listed.keySet(), listed, true);
  }
}
