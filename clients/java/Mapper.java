// DynamoDBMapper of the AWS SDK for Java 1 as applications use it: lazy lists, pages, parallel scans, batches, transactions and optimistic locking by
// a version. `java Mapper.java ENDPOINT SECONDS` plays rounds for so long, and one at least, while keys may be moved. It ends with 1 where something
// is otherwise.

import com.amazonaws.auth.*;
import com.amazonaws.client.builder.AwsClientBuilder.EndpointConfiguration;
import com.amazonaws.services.dynamodbv2.*;
import com.amazonaws.services.dynamodbv2.datamodeling.*;
import com.amazonaws.services.dynamodbv2.datamodeling.DynamoDBMapperConfig.*;
import com.amazonaws.services.dynamodbv2.model.*;
import com.amazonaws.services.dynamodbv2.util.TableUtils;
import java.util.*;
import java.util.concurrent.*;
import java.util.function.Function;
import java.util.stream.*;
import java.util.stream.Stream;

public final class Mapper {
    static final int PLAYERS = 120, PAGE = 17, WRITERS = 4, STEPS = 5;
    // Whether keys are moved meanwhile: a Scan may then show items twice (docs/reference/tested-with.md).
    static final boolean MOVING = System.getenv("HEATSINK_BEGINS_AGAIN") != null;

    @DynamoDBTable(tableName = "replaced")
    public static final class Score {
        private String game, player, note;
        private int points;
        private Set<String> tags;
        private List<Integer> last;
        private Long version;

        @DynamoDBHashKey public String getGame() { return game; }
        public void setGame(String game) { this.game = game; }
        @DynamoDBRangeKey public String getPlayer() { return player; }
        public void setPlayer(String player) { this.player = player; }
        @DynamoDBAttribute public String getNote() { return note; }
        public void setNote(String note) { this.note = note; }
        @DynamoDBAttribute public int getPoints() { return points; }
        public void setPoints(int points) { this.points = points; }
        @DynamoDBAttribute public Set<String> getTags() { return tags; }
        public void setTags(Set<String> tags) { this.tags = tags; }
        @DynamoDBAttribute public List<Integer> getLast() { return last; }
        public void setLast(List<Integer> last) { this.last = last; }
        @DynamoDBVersionAttribute public Long getVersion() { return version; }
        public void setVersion(Long version) { this.version = version; }

        /** All but the version. */
        @Override public String toString() { return List.of(game, player, "" + note, points, new TreeSet<>(tags), last).toString(); }
        @Override public boolean equals(Object other) { return other instanceof Score && toString().equals(other.toString()); }
        @Override public int hashCode() { return toString().hashCode(); }
    }

    static AmazonDynamoDB client;
    static DynamoDBMapper mapper;

    static void same(Object got, Object expected) {
        if (!got.equals(expected)) throw new AssertionError(got + "\n is not\n" + expected);
    }

    static Score of(String game, int number) {
        var score = new Score();
        score.setGame(game);
        score.setPlayer(String.format("p%04d", number));
        score.setPoints(number * 7919 % 1009);
        score.setTags(Set.of("a", "t" + number % 3));
        score.setLast(List.of(number, -number));
        return score;
    }

    static Score key(String game, String player) {
        var score = new Score();
        score.setGame(game);
        score.setPlayer(player);
        return score;
    }

    static DynamoDBQueryExpression<Score> query(String game, boolean forward) {
        return new DynamoDBQueryExpression<Score>().withHashKeyValues(key(game, null)).withConsistentRead(true).withLimit(PAGE)
            .withScanIndexForward(forward).withRangeKeyCondition("player",
                new Condition().withComparisonOperator(ComparisonOperator.BEGINS_WITH).withAttributeValueList(new AttributeValue("p")));
    }

    /** Reads a lazy list forward, and pages backward from the position that each gave. */
    static void queries(List<Score> expected) {
        var game = expected.get(0).getGame();
        same(new ArrayList<>(mapper.query(Score.class, query(game, true))), expected);
        same(mapper.count(Score.class, query(game, true)), expected.size());
        var backward = query(game, false);
        var found = new ArrayList<Score>();
        do {
            var page = mapper.queryPage(Score.class, backward);
            if (page.getLastEvaluatedKey() != null) same(page.getResults().size(), PAGE);
            found.addAll(page.getResults());
            backward = query(game, false).withExclusiveStartKey(page.getLastEvaluatedKey());
        } while (backward.getExclusiveStartKey() != null);
        Collections.reverse(found);
        same(found, expected);
    }

    /** Scans lazily, and in parallel, with a filter. */
    static void scans(List<Score> expected) {
        var few = new DynamoDBScanExpression().withConsistentRead(true).withLimit(PAGE).withFilterExpression("points < :most")
            .withExpressionAttributeValues(Map.of(":most", new AttributeValue().withN("500")));
        var wanted = expected.stream().filter(score -> score.getPoints() < 500).collect(Collectors.toSet());
        for (var found : List.of(new ArrayList<>(mapper.scan(Score.class, few)), new ArrayList<>(mapper.parallelScan(Score.class, few, 3)))) {
            same(new HashSet<>(found), wanted);
            if (!MOVING) same(found.size(), wanted.size());
        }
    }

    /** Several writers add to one item, each under the version that it has read; what is stale is refused. */
    static void locks(Score one, ExecutorService pool) throws Exception {
        var before = mapper.load(one);
        var writers = Collections.nCopies(WRITERS, (Callable<Void>) () -> {
            for (int step = 0; step < STEPS; ) {
                var seen = mapper.load(key(one.getGame(), one.getPlayer()));
                seen.setPoints(seen.getPoints() + 1);
                try {
                    mapper.save(seen);
                    step++;
                } catch (ConditionalCheckFailedException another) {
                    // It reads again.
                }
            }
            return null;
        });
        for (var writer : pool.invokeAll(writers)) writer.get();
        var after = mapper.load(one);
        same(after.getPoints(), before.getPoints() + WRITERS * STEPS);
        same(after.getVersion(), before.getVersion() + WRITERS * STEPS);
        try {
            mapper.delete(before);
            throw new AssertionError("a stale version is deleted");
        } catch (ConditionalCheckFailedException stale) {
            same(mapper.load(one), after);
        }
        after.setPoints(one.getPoints());
        mapper.save(after);
    }

    /** Sends a transaction again where another write was in the way, as the SDK says; gives the reasons of one that is cancelled for good. */
    static List<String> send(TransactionWriteRequest request) {
        while (true) {
            try {
                mapper.transactionWrite(request);
                return List.of();
            } catch (TransactionCanceledException cancelled) {
                var why = cancelled.getCancellationReasons().stream().map(CancellationReason::getCode).collect(Collectors.toList());
                if (!why.contains("TransactionConflict")) return why;
            }
        }
    }

    static void sets(List<Score> expected) {
        var some = expected.subList(0, 100);
        var found = mapper.batchLoad(some.stream().map(one -> key(one.getGame(), one.getPlayer())).collect(Collectors.toList()));
        same(found.values().stream().flatMap(List::stream).map(Object::toString).collect(Collectors.toSet()),
            some.stream().map(Object::toString).collect(Collectors.toSet()));

        // In a transaction the mapper's condition is the version.
        Function<Score, Score> noted = one -> {
            var now = mapper.load(one);
            now.setNote("noted");
            return now;
        };
        Score first = noted.apply(expected.get(0)), second = noted.apply(expected.get(1)), stale = noted.apply(expected.get(1));
        same(send(new TransactionWriteRequest().addUpdate(first).addUpdate(second)), List.of());
        var third = noted.apply(expected.get(2));
        same(send(new TransactionWriteRequest().addUpdate(third).addUpdate(stale)), List.of("None", "ConditionalCheckFailed"));
        var loaded = mapper.transactionLoad(new TransactionLoadRequest().addLoad(key("hot", second.getPlayer())).addLoad(key("hot", third.getPlayer())));
        same(loaded, List.of(second, expected.get(2)));
        for (var one : expected.subList(0, 2)) {
            var now = mapper.load(one);
            now.setNote(null);
            mapper.save(now);
        }
    }

    public static void main(String[] arguments) throws Exception {
        client = AmazonDynamoDBClientBuilder.standard().withEndpointConfiguration(new EndpointConfiguration(arguments[0], "us-east-1"))
            .withCredentials(new AWSStaticCredentialsProvider(new BasicAWSCredentials("local", "local"))).build();
        var table = "JavaMapper" + System.nanoTime();
        mapper = new DynamoDBMapper(client, DynamoDBMapperConfig.builder().withConsistentReads(ConsistentReads.CONSISTENT)
            .withTableNameOverride(TableNameOverride.withTableNameReplacement(table)).build());
        client.createTable(mapper.generateCreateTableRequest(Score.class).withBillingMode(BillingMode.PAY_PER_REQUEST));
        TableUtils.waitUntilActive(client, table);
        var hot = IntStream.range(0, PLAYERS).mapToObj(number -> of("hot", number)).collect(Collectors.toList());
        var cold = IntStream.range(0, 5).mapToObj(number -> of("cold", number)).collect(Collectors.toList());
        var all = Stream.concat(hot.stream(), cold.stream()).collect(Collectors.toList());
        same(mapper.batchSave(all), List.of());
        // A batch writes no versions: one save of each begins them.
        for (var one : all) mapper.save(one, SaveBehavior.CLOBBER.config());

        // Its threads keep nobody from ending with what is otherwise.
        var pool = Executors.newFixedThreadPool(WRITERS, work -> {
            var thread = new Thread(work);
            thread.setDaemon(true);
            return thread;
        });
        int rounds = 0;
        for (long end = System.nanoTime() + Long.parseLong(arguments[1]) * 1_000_000_000L; rounds == 0 || System.nanoTime() < end; rounds++) {
            queries(hot);
            queries(cold);
            scans(all);
            locks(hot.get(PLAYERS - 1), pool);
            sets(hot);
        }
        client.deleteTable(table);
        System.out.println(rounds + " rounds");
    }
}
