package io.sparklog.storage;

import java.io.IOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.file.FileAlreadyExistsException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A real store that fails where a test tells it to, before a call takes effect, after it, or for a put with an effect that comes late.
 *
 * <p>A call is named by its method, as {@code putIfAbsent}, or by method and first argument, as {@code flush _partlog/t}.
 */
public final class FaultyStore {
  /** Whether a fault comes before the call takes effect, or when it has: then only its answer is lost. */
  public enum When {
    BEFORE, AFTER
  }

  /** Is shown every call that can fail; what it throws is what the caller sees. */
  public interface Hook {
    void at(String method, String name, When when) throws Throwable;
  }

  /** Answers in place of the store. */
  public interface Answer {
    Object to(LogStore real, Object[] arguments) throws Throwable;
  }

  /** A put that has not taken effect yet. */
  private interface Late {
    void land() throws Throwable;
  }

  private record Replaced(String call, Answer answer) {}

  private final LogStore real;
  private final List<Hook> hooks = new CopyOnWriteArrayList<>();
  private final List<Replaced> answers = new CopyOnWriteArrayList<>();
  private final Deque<Late> late = new ArrayDeque<>();
  private int unanswered;
  private final List<String> calls = Collections.synchronizedList(new ArrayList<>());

  private FaultyStore(LogStore real) {
    this.real = real;
  }

  /** A store that does what {@code real} does, until it is told of a fault. */
  public static FaultyStore of(LogStore real) {
    return new FaultyStore(real);
  }

  /** Fails the {@code count}-th of the calls to come, from 1, and no other. */
  public FaultyStore fail(String call, int count, When when, Throwable with) {
    requireKnown(call);
    AtomicInteger seen = new AtomicInteger();
    return at((method, name, at) -> {
      if (at == when && isCall(call, method, name) && seen.incrementAndGet() == count) {
        throw with;
      }
    });
  }

  /** Fails every call to come. */
  public FaultyStore failAll(String call, When when, Throwable with) {
    requireKnown(call);
    return at((method, name, at) -> {
      if (at == when && isCall(call, method, name)) {
        throw with;
      }
    });
  }

  /** Gives the next {@code puts} puts no answer, and holds them back: {@link #land} lets them take effect. */
  public FaultyStore holdBack(int puts) {
    unanswered = puts;
    return this;
  }

  /** Lets the puts that were held back take effect, in their order, each while its name is absent. */
  public void land() throws IOException {
    while (!late.isEmpty()) {
      try {
        late.remove().land();
      } catch (FileAlreadyExistsException refused) {
        // The caller does not hear of it.
      } catch (Throwable e) {
        throw new IOException(e);
      }
    }
  }

  /** Runs {@code hook} before and after every call to come. */
  public FaultyStore at(Hook hook) {
    hooks.add(hook);
    return this;
  }

  /** Answers every call to come by {@code answer}. */
  public FaultyStore answer(String call, Answer answer) {
    requireKnown(call);
    answers.add(new Replaced(call, answer));
    return this;
  }

  /** The calls so far, by method and first argument. */
  public List<String> calls() {
    return calls;
  }

  public LinkingStore store() {
    return proxy(LinkingStore.class);
  }

  /** The same as {@link #store}, as if the place were behind a network, where there are no links. */
  public LogStore withoutLinks() {
    answer("isRemote", (real, with) -> true);
    return proxy(LogStore.class);
  }

  private <T> T proxy(Class<T> type) {
    return type.cast(
        Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (proxy, method, arguments) -> called(method, arguments)));
  }

  private Object called(Method method, Object[] arguments) throws Throwable {
    if (method.getName().equals("listing")) {
      return InvocationHandler.invokeDefault(store(), method, arguments); // By a call of list.
    }
    String name = arguments == null ? "" : String.valueOf(arguments[0]);
    if (!List.of("isRemote", "requests").contains(method.getName())) { // That is no call of the place.
      calls.add(method.getName() + " " + name);
    }
    show(method, name, When.BEFORE);
    if (method.getName().equals("putIfAbsent") && unanswered > 0) {
      unanswered--;
      late.add(() -> answered(method, name, arguments));
      throw new NoAnswerException(real.location(name), null);
    }
    Object answer = answered(method, name, arguments);
    show(method, name, When.AFTER);
    return answer;
  }

  private void show(Method method, String name, When when) throws Throwable {
    if (canFail(method)) {
      for (Hook hook : hooks) {
        hook.at(method.getName(), name, when);
      }
    }
  }

  private static boolean canFail(Method method) {
    return Arrays.asList(method.getExceptionTypes()).contains(IOException.class);
  }

  private Object answered(Method method, String name, Object[] arguments) throws Throwable {
    for (Replaced replaced : answers) {
      if (isCall(replaced.call(), method.getName(), name)) {
        return replaced.answer().to(real, arguments);
      }
    }
    try {
      if (method.getName().equals("deleteAll")) {
        return InvocationHandler.invokeDefault(store(), method, arguments);
      }
      return method.invoke(real, arguments);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }

  private static boolean isCall(String call, String method, String name) {
    return call.equals(method) || call.equals(method + " " + name);
  }

  /** A fault in a call that does not exist would never come, and its test would pass. */
  private static void requireKnown(String call) {
    String method = call.split(" ", 2)[0];
    if (Arrays.stream(LinkingStore.class.getMethods()).noneMatch(known -> known.getName().equals(method))) {
      throw new IllegalArgumentException("a store has no method " + method);
    }
  }
}
