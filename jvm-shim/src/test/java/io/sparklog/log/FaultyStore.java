package io.sparklog.log;

import io.sparklog.storage.LinkingStore;
import io.sparklog.storage.LogStore;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;

/**
 * A store that fails as it is told: each of its calls is shown to a test before and after it takes effect, and what the test throws is what
 * the caller sees.
 */
final class FaultyStore {
  private FaultyStore() {}

  interface Hook {
    /**
     * @param call the method, as {@code putIfAbsent}
     * @param name its first argument, "" if it has none
     * @param after whether the call has taken effect
     */
    void at(String call, String name, boolean after) throws Throwable;
  }

  static LogStore over(LogStore store, Hook hook) {
    return (LogStore) Proxy.newProxyInstance(LogStore.class.getClassLoader(), new Class<?>[] {LinkingStore.class},
        (proxy, method, arguments) -> {
          String name = arguments == null ? "" : String.valueOf(arguments[0]);
          hook.at(method.getName(), name, false);
          Object answer = call(store, method, arguments);
          hook.at(method.getName(), name, true);
          return answer;
        });
  }

  static Object call(LogStore store, Method method, Object[] arguments) throws Throwable {
    try {
      return method.invoke(store, arguments);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }
}
