package io.sparklog.serve.protocol;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.function.Consumer;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;

/**
 * Finds the errors in any answer: Kafka's message classes have them as {@code errorCode()}, of the answer itself and of the parts in its
 * lists.
 */
final class ErrorCodes {
  private static final ClassValue<ErrorCodes> OF = new ClassValue<>() {
    @Override
    protected ErrorCodes computeValue(Class<?> type) {
      return new ErrorCodes(type);
    }
  };

  private final List<Method> codes = new ArrayList<>();
  private final List<Method> lists = new ArrayList<>();

  private ErrorCodes(Class<?> type) {
    for (Method method : type.getDeclaredMethods()) {
      if (Modifier.isPublic(method.getModifiers()) && !Modifier.isStatic(method.getModifiers()) && method.getParameterCount() == 0) {
        if (method.getName().equals("errorCode")) {
          codes.add(method);
        } else if (Collection.class.isAssignableFrom(method.getReturnType())) {
          lists.add(method);
        }
      }
    }
  }

  /** Gives each error of an answer, and no success. */
  static void each(Message message, Consumer<Errors> taker) {
    ErrorCodes known = OF.get(message.getClass());
    try {
      for (Method code : known.codes) {
        short number = (short) code.invoke(message);
        if (number != Errors.NONE.code()) {
          taker.accept(Errors.forCode(number));
        }
      }
      for (Method list : known.lists) {
        Collection<?> parts = (Collection<?>) list.invoke(message);
        if (parts != null) {
          for (Object part : parts) {
            if (!(part instanceof Message)) {
              break; // A list has parts of one class.
            }
            each((Message) part, taker);
          }
        }
      }
    } catch (IllegalAccessException | InvocationTargetException e) {
      throw new IllegalStateException(e);
    }
  }
}
