import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.function.ToIntFunction;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Logical keys of what is read past Heatsink: records of a DynamoDB Stream (KCL, Lambda), of Kinesis, items of an export. Copy this one file;
 * it needs Java 17.
 *
 * <pre>
 * Logical.string("game_x#~3", Logical.SUFFIX)                 // Key[value=game_x, shard=3, bucket=null]
 * Logical.record(one, new Logical.Table("pk", Logical.SUFFIX)) // the stream record with logical keys; null for what is no change of an item
 * </pre>
 *
 * How physical keys are written is a form: SUFFIX under rules (numbers included), BUCKETS where a rule has buckets, WHOLE where rules name only
 * indexes, recorded(...) where no rule names the table's keys and single ones were resharded, templates(...) where a rule has a template. It is
 * told, not guessed: {@code game_x#~3} is a client's own key in a table that is not sharded.
 *
 * <p>Records and values are DynamoDB JSON as maps; binary values in them are base64 or byte[], and come back as they came.
 */
public final class Logical {
  /** The attribute of an old copy. */
  private static final String MOVED = "heatsink:moved";

  private Logical() {}

  /** A logical key: text, bytes or an attribute value, as it was given. The bucket is as ISO 8601 writes it (2026-06-22), or null. */
  public record Key<T>(T value, int shard, String bucket) {}

  public record Form(String kind, ToIntFunction<String> reserved, List<Rule> rules) {
    private Form(String kind) {
      this(kind, key -> 0, List.of());
    }
  }

  public static final Form SUFFIX = new Form("suffix"), BUCKETS = new Form("buckets"), WHOLE = new Form("whole");

  /**
   * Only keys on record have shards: {@code reserved} gives the "reserved" of {@code heatsink reshard status TABLE --output json}, 0 for other
   * keys. Keys are given as it prints them: binary ones in base64, numbers in canonical text. {@code key -> 65536} takes every key that is
   * written like a shard for one: right where no client has keys that end in {@code #~} and a number.
   */
  public static Form recorded(ToIntFunction<String> reserved) {
    return new Form("recorded", reserved, List.of());
  }

  /** The table's rules in their order, where one of them has a template. */
  public static Form templates(Rule... rules) {
    return new Form("templates", key -> 0, List.of(rules));
  }

  /** Template null: keys that stay whole. Bucket: "hour", "day", "week", "month" or null. Keys: which logical keys the rule names. */
  public record Rule(String template, int shards, String bucket, Predicate<String> keys) {}

  /**
   * The partition key's name and form; the forms of spread keys of indexes by their names, SUFFIX by a rule, recorded(...) by
   * {@code reshard --index}; which logical keys hold counters.
   */
  public record Table(String key, Form form, Map<String, Form> attributes, Predicate<String> isCounter) {
    public Table(String key, Form form) {
      this(key, form, Map.of(), logical -> false);
    }
  }

  public static Key<String> string(String physical, Form form) {
    return text(physical, 'S', form);
  }

  public static Key<String> number(String physical, Form form) {
    return text(physical, 'N', form);
  }

  public static Key<byte[]> binary(byte[] physical, Form form) {
    Key<String> read = decode(new String(physical, StandardCharsets.ISO_8859_1), 'B', form);
    return new Key<>(read.value.getBytes(StandardCharsets.ISO_8859_1), read.shard, read.bucket);
  }

  /** The logical key, shard and bucket of an attribute value. */
  public static Key<Map<String, Object>> value(Map<String, Object> value, Form form) {
    Map.Entry<String, Object> stored = value.entrySet().iterator().next();
    Key<?> read = switch (stored.getKey()) {
      case "S" -> string((String) stored.getValue(), form);
      case "N" -> number((String) stored.getValue(), form);
      case "B" -> {
        if (stored.getValue() instanceof byte[] bytes) yield binary(bytes, form);
        Key<byte[]> raw = binary(Base64.getDecoder().decode((String) stored.getValue()), form);
        yield new Key<>(Base64.getEncoder().encodeToString(raw.value), raw.shard, raw.bucket);
      }
      default -> new Key<>(stored.getValue(), 0, null);
    };
    return new Key<>(Map.of(stored.getKey(), read.value), read.shard, read.bucket);
  }

  /**
   * A stream record with logical keys in Keys, NewImage and OldImage; null if it is of a part of a counter, which is no item of its own, or of the
   * old copy of an item that moved to another shard.
   */
  public static Map<String, Object> record(Map<String, Object> record, Table table) {
    Map<String, Object> change = new LinkedHashMap<>(map(record.get("dynamodb")));
    for (String image : List.of("NewImage", "OldImage")) {
      if (change.get(image) != null && map(change.get(image)).containsKey(MOVED)) return null;
    }
    Key<Map<String, Object>> key = value(map(map(change.get("Keys")).get(table.key)), table.form);
    boolean isBase = key.shard == 0 && key.bucket == null;
    Object named = key.value.values().iterator().next();
    if (!isBase && table.isCounter.test(named instanceof byte[] bytes ? Base64.getEncoder().encodeToString(bytes) : (String) named)) return null;
    for (String image : List.of("Keys", "NewImage", "OldImage")) change.computeIfPresent(image, (name, stored) -> item(map(stored), table));
    Map<String, Object> changed = new LinkedHashMap<>(record);
    changed.put("dynamodb", change);
    return changed;
  }

  /** An item with its logical key, and logical values of the keys of indexes; numbers of these are never spread. */
  public static Map<String, Object> item(Map<String, Object> stored, Table table) {
    Map<String, Object> changed = new LinkedHashMap<>(stored);
    table.attributes.forEach((name, form) -> changed.computeIfPresent(name, (same, one) -> {
      boolean isSpread = map(one).containsKey("S") || map(one).containsKey("B");
      return isSpread ? value(map(one), form).value : one;
    }));
    changed.computeIfPresent(table.key, (name, one) -> value(map(one), table.form).value);
    return changed;
  }

  @SuppressWarnings("unchecked")
  private static Map<String, Object> map(Object json) {
    return (Map<String, Object>) json;
  }

  /** Keys are read as bytes, each a character of its own. */
  private static Key<String> text(String physical, char kind, Form form) {
    String bytes = new String(physical.getBytes(StandardCharsets.UTF_8), StandardCharsets.ISO_8859_1);
    Key<String> read = decode(kind == 'N' ? canonical(bytes) : bytes, kind, form);
    return new Key<>(named(read.value, 'S'), read.shard, read.bucket);
  }

  /** A key as callers know it. */
  private static String named(String key, char kind) {
    byte[] bytes = key.getBytes(StandardCharsets.ISO_8859_1);
    return kind == 'B' ? Base64.getEncoder().encodeToString(bytes) : new String(bytes, StandardCharsets.UTF_8);
  }

  private static Key<String> decode(String physical, char kind, Form form) {
    Key<String> whole = new Key<>(physical, 0, null);
    if (form.kind.equals("whole")) return whole;
    if (form.kind.equals("templates")) return byTemplates(physical, kind, form.rules);
    Key<String> read = kind == 'N' ? shardOfNumber(physical) : shardOf(physical);
    if (form.kind.equals("recorded")) return read.shard < form.reserved.applyAsInt(named(read.value, kind)) ? read : whole;
    if (kind == 'N') return read;
    boolean hasBuckets = form.kind.equals("buckets");
    Key<String> dated = hasBuckets ? bucketOf(read.value) : read;
    Key<String> inner = split(dated.value);
    boolean isEscaped = inner.shard == 0 && (split(inner.value).shard >= 0 || hasBuckets && bucketOf(inner.value).bucket != null);
    return new Key<>(isEscaped ? inner.value : dated.value, read.shard, dated.bucket);
  }

  private static final Pattern RESERVED = Pattern.compile("#~(0|[1-9][0-9]{0,4})\\z");

  /** What stands before {@code #~} and a number, and that number; -1 if none stands there. */
  private static Key<String> split(String key) {
    Matcher found = RESERVED.matcher(key);
    return found.find() ? new Key<>(key.substring(0, found.start()), Integer.parseInt(found.group(1)), null) : new Key<>(key, -1, null);
  }

  private static Key<String> shardOf(String physical) {
    Key<String> read = split(physical);
    return read.shard >= 1 && read.shard <= 65535 ? read : new Key<>(physical, 0, null);
  }

  private static final Map<String, String> FORMATS =
      Map.of("hour", "%Y-%m-%dT%H", "day", "%Y-%m-%d", "week", "%G-W%V", "month", "%Y-%m");

  /** A literal of a template, as a pattern for its bytes. */
  private static String quoted(String literal) {
    return Pattern.quote(new String(literal.getBytes(StandardCharsets.UTF_8), StandardCharsets.ISO_8859_1));
  }

  private static final Pattern FIELD = Pattern.compile("%([YGmdHV])");

  /** A pattern for the buckets of a format: a group for each field. */
  private static String pattern(String format) {
    StringBuilder pattern = new StringBuilder();
    Matcher field = FIELD.matcher(format);
    int end = 0;
    for (; field.find(); end = field.end()) {
      int width = "YG".contains(field.group(1)) ? 4 : 2;
      pattern.append(quoted(format.substring(end, field.start()))).append("(?<" + field.group(1) + ">[0-9]{" + width + "})");
    }
    return pattern.append(quoted(format.substring(end))).toString();
  }

  private static final List<Pattern> BUCKET_PATTERNS =
      FORMATS.values().stream().map(format -> Pattern.compile("#~" + pattern(format) + "\\z")).toList();

  /** What stands before {@code #~} and a bucket, and that bucket. */
  private static Key<String> bucketOf(String key) {
    for (Pattern pattern : BUCKET_PATTERNS) {
      Matcher found = pattern.matcher(key);
      String bucket = found.find() ? calendar(found) : null;
      if (bucket != null) return new Key<>(key.substring(0, found.start()), 0, bucket);
    }
    return new Key<>(key, 0, null);
  }

  private static String group(Matcher found, String name) {
    return found.pattern().pattern().contains("(?<" + name + ">") ? found.group(name) : null;
  }

  /** The bucket of these fields as ISO 8601 writes it; null if the calendar has none. */
  private static String calendar(Matcher found) {
    String weeks = group(found, "G"), years = group(found, "Y"), day = group(found, "d"), hour = group(found, "H");
    if (weeks != null) {
      int of = Integer.parseInt(weeks), week = Integer.parseInt(group(found, "V"));
      int last = lastWeekday(of) == 4 || lastWeekday(of - 1) == 3 ? 53 : 52;
      return week >= 1 && week <= last ? weeks + "-W" + group(found, "V") : null;
    }
    int year = Integer.parseInt(years), month = Integer.parseInt(group(found, "m"));
    boolean isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (month < 1 || month > 12) return null;
    int days = List.of(31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31).get(month - 1);
    if (day != null && (Integer.parseInt(day) < 1 || Integer.parseInt(day) > days) || hour != null && Integer.parseInt(hour) > 23) return null;
    return years + "-" + group(found, "m") + (day == null ? "" : "-" + day) + (hour == null ? "" : "T" + hour);
  }

  /** The day of the week of a year's last day, from Sunday, 0. The calendar repeats after 400 years. */
  private static int lastWeekday(int year) {
    int from = year + 400;
    return (from + from / 4 - from / 100 + from / 400) % 7;
  }

  private static final Pattern NUMBER = Pattern.compile("([+-]?)([0-9]*)\\.?([0-9]*)(?:[eE]([+-]?)0*([0-9]{1,6}))?");

  /** A number as DynamoDB writes it: no exponent, no needless zeros. What is none is left as it is. */
  private static String canonical(String number) {
    Matcher found = NUMBER.matcher(number);
    if (!found.matches() || (found.group(2) + found.group(3)).isEmpty()) return number;
    String digits = (found.group(2) + found.group(3)).replaceFirst("^0+", ""), kept = trimmed(digits);
    int written = found.group(5) == null ? 0 : Integer.parseInt(found.group(4) + found.group(5));
    int exponent = written - found.group(3).length() + digits.length() - kept.length();
    int top = exponent + Math.max(kept.length(), 1) - 1;
    if (kept.length() > 38 || top < -130 || top > 125) return number;
    if (kept.isEmpty()) return "0";
    int point = kept.length() + exponent;
    String sign = found.group(1).equals("-") ? "-" : "";
    if (exponent >= 0) return sign + kept + "0".repeat(exponent);
    return sign + (point > 0 ? kept.substring(0, point) + "." + kept.substring(point) : "0." + "0".repeat(-point) + kept);
  }

  /** Without zeros at the end. */
  private static String trimmed(String digits) {
    int end = digits.length();
    while (end > 0 && digits.charAt(end - 1) == '0') end--;
    return digits.substring(0, end);
  }

  private static final Pattern NUMBERED = Pattern.compile("(-?[0-9]{1,20})\\.([0-9]{6})709551([0-9]{1,4})");

  /** The logical key 12.5 in shard 3 is 12.5000007095510003. */
  private static Key<String> shardOfNumber(String physical) {
    Matcher found = NUMBERED.matcher(physical);
    if (!found.matches()) return new Key<>(physical, 0, null);
    String own = trimmed(found.group(2)), key = own.isEmpty() ? found.group(1) : found.group(1) + "." + own;
    int shard = Integer.parseInt((found.group(3) + "000").substring(0, 4));
    return shard > 0 && !key.equals("-0") ? new Key<>(key, shard, null) : new Key<>(physical, 0, null);
  }

  private static Key<String> byTemplates(String physical, char kind, List<Rule> rules) {
    for (Rule rule : rules) {
      Key<String> read = rule.template == null ? null : byTemplate(physical, rule);
      if (read == null) continue;
      String named = named(read.value, kind);
      if (rules.stream().filter(other -> other.keys.test(named)).findFirst().orElse(null) == rule) return read;
    }
    return new Key<>(physical, 0, null);
  }

  private static final Pattern PIECE = Pattern.compile("\\{(pk|shard|bucket)(?:\\+([0-9]+))?(?::([^}]*))?\\}");

  private static Key<String> byTemplate(String physical, Rule rule) {
    StringBuilder pattern = new StringBuilder();
    Matcher piece = PIECE.matcher(rule.template);
    int end = 0, start = 0, width = 1;
    for (; piece.find(); end = piece.end()) {
      pattern.append(quoted(rule.template.substring(end, piece.start())));
      switch (piece.group(1)) {
        case "pk" -> pattern.append("(?<pk>.+)");
        case "bucket" -> pattern.append(pattern(piece.group(3) == null ? FORMATS.get(rule.bucket) : piece.group(3)));
        default -> {
          pattern.append("(?<shard>[0-9]{1,5})");
          start = piece.group(2) == null ? 0 : Integer.parseInt(piece.group(2));
          width = piece.group(3) == null ? 1 : Integer.parseInt(piece.group(3).replace("d", ""));
        }
      }
    }
    Matcher found = Pattern.compile(pattern + quoted(rule.template.substring(end)), Pattern.DOTALL).matcher(physical);
    if (!found.matches()) return null;
    String digits = group(found, "shard");
    int shard = digits == null ? 0 : Integer.parseInt(digits) - start;
    boolean isWrittenSo = digits == null || shard >= 0 && digits.equals(String.format("%0" + width + "d", shard + start));
    boolean hasBucket = group(found, "Y") != null || group(found, "G") != null;
    String bucket = hasBucket ? calendar(found) : null;
    if (!isWrittenSo || shard < 0 || shard >= rule.shards || hasBucket && bucket == null) return null;
    return new Key<>(found.group("pk"), shard, bucket);
  }
}
