import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;

/** Holds Logical.java against the table of vectors, whose path is the argument. Ends with 1 where they differ. */
public final class LogicalTest {
  private static int faults;

  public static void main(String[] arguments) throws Exception {
    int keys = 0, records = 0;
    for (String line : Files.readString(Path.of(arguments[0])).strip().split("\n")) {
      Map<String, Object> row = map(new Json(line).value());
      if (row.containsKey("value")) {
        keys++;
        key(row, line);
      } else {
        records++;
        String before = row.get("record").toString();
        Map<String, Object> read = Logical.record(map(row.get("record")), table(map(row.get("table"))));
        equal(row.get("logical"), read, line);
        equal(before, row.get("record").toString(), "the record that was given is changed: " + line);
      }
    }
    equal(true, keys > 500 && records > 20, "rows");
    System.out.println(keys + " keys, " + records + " records, " + faults + " faults");
    System.exit(faults == 0 ? 0 : 1);
  }

  private static void key(Map<String, Object> row, String line) {
    Map<String, Object> stored = map(row.get("value")), expected = map(row.get("logical"));
    Logical.Form form = form(map(row.get("form")));
    int shard = (Integer) row.get("shard");
    equal(new Logical.Key<>(expected, shard, (String) row.get("bucket")), Logical.value(stored, form), line);
    if (!stored.containsKey("B")) return;
    byte[] raw = Base64.getDecoder().decode((String) stored.get("B")), logical = Base64.getDecoder().decode((String) expected.get("B"));
    Logical.Key<Map<String, Object>> read = Logical.value(Map.of("B", raw), form);
    equal(true, Arrays.equals(logical, (byte[]) read.value().get("B")), "bytes: " + line);
  }

  private static void equal(Object expected, Object is, String what) {
    if (expected == null ? is == null : expected.equals(is)) return;
    faults++;
    System.out.println("expected " + expected + "\n   found " + is + "\n      in " + what);
  }

  private static Predicate<String> glob(String text) {
    return key -> text.endsWith("*") ? key.startsWith(text.substring(0, text.length() - 1)) : key.equals(text);
  }

  private static Logical.Form form(Map<String, Object> said) {
    return switch ((String) said.get("kind")) {
      case "suffix" -> Logical.SUFFIX;
      case "buckets" -> Logical.BUCKETS;
      case "whole" -> Logical.WHOLE;
      case "recorded" -> Logical.recorded(key -> (Integer) map(said.get("reserved")).getOrDefault(key, 0));
      default -> Logical.templates(((List<?>) said.get("rules")).stream().map(one -> map(one)).map(one -> new Logical.Rule(
          (String) one.get("template"), (Integer) one.get("shards"), (String) one.get("bucket"), glob((String) one.get("keys"))))
          .toArray(Logical.Rule[]::new));
    };
  }

  private static Logical.Table table(Map<String, Object> said) {
    Map<String, Logical.Form> attributes = new LinkedHashMap<>();
    map(said.get("attributes")).forEach((name, one) -> attributes.put(name, form(map(one))));
    return new Logical.Table((String) said.get("key"), form(map(said.get("form"))), attributes, ((List<?>) said.get("counters"))::contains);
  }

  @SuppressWarnings("unchecked")
  private static Map<String, Object> map(Object json) {
    return (Map<String, Object>) json;
  }

  /** JSON as the vectors have it: whole numbers, no blanks outside strings. */
  private static final class Json {
    private final String text;
    private int at;

    Json(String text) {
      this.text = text;
    }

    Object value() {
      char first = text.charAt(at);
      if (first == '"') return string();
      if (first == '{') {
        Map<String, Object> members = new LinkedHashMap<>();
        for (at++; text.charAt(at) != '}'; skipComma()) {
          String name = string();
          at++;
          members.put(name, value());
        }
        at++;
        return members;
      }
      if (first == '[') {
        List<Object> elements = new ArrayList<>();
        for (at++; text.charAt(at) != ']'; skipComma()) elements.add(value());
        at++;
        return elements;
      }
      int begin = at;
      while ("-0123456789truefalsn".indexOf(text.charAt(at)) >= 0) at++;
      String word = text.substring(begin, at);
      return switch (word) {
        case "null" -> null;
        case "true" -> true;
        case "false" -> false;
        default -> Integer.valueOf(word);
      };
    }

    private void skipComma() {
      if (text.charAt(at) == ',') at++;
    }

    private String string() {
      StringBuilder string = new StringBuilder();
      for (at++; text.charAt(at) != '"'; at++) {
        if (text.charAt(at) != '\\') {
          string.append(text.charAt(at));
          continue;
        }
        char escape = text.charAt(++at);
        if (escape == 'u') {
          string.append((char) Integer.parseInt(text.substring(at + 1, at + 5), 16));
          at += 4;
        } else {
          int plain = "bfnrt".indexOf(escape);
          string.append(plain < 0 ? escape : "\b\f\n\r\t".charAt(plain));
        }
      }
      at++;
      return string.toString();
    }
  }
}
