// The AWS SDK for Java 1 through a gateway that knows its clients (signed.toml), over TLS: `java Signed.java ENDPOINT CA`. It ends with 1 where something
// is otherwise. The SDK compares each answer with its `x-amz-crc32` by itself, compressed ones too.

import com.amazonaws.AmazonServiceException;
import com.amazonaws.ClientConfiguration;
import com.amazonaws.SignableRequest;
import com.amazonaws.auth.*;
import com.amazonaws.client.builder.AwsClientBuilder.EndpointConfiguration;
import com.amazonaws.services.dynamodbv2.*;
import com.amazonaws.services.dynamodbv2.model.*;
import java.io.FileInputStream;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.*;
import java.util.stream.*;
import javax.net.ssl.*;
import org.apache.http.conn.ssl.SSLConnectionSocketFactory;

public final class Signed {
    static final AWSCredentials ADMIN = new BasicAWSCredentials("admin", "admin/+secret");
    static final AWSCredentials TEAM = new BasicSessionCredentials("team1", "team", "token/+==");
    static String endpoint;
    static SSLContext tls;

    static AmazonDynamoDB as(AWSCredentials who, ClientConfiguration settings) {
        settings.withMaxErrorRetry(0).getApacheHttpClientConfig().setSslSocketFactory(new SSLConnectionSocketFactory(tls));
        return AmazonDynamoDBClientBuilder.standard().withClientConfiguration(settings)
            .withEndpointConfiguration(new EndpointConfiguration(endpoint, "us-east-1"))
            .withCredentials(new AWSStaticCredentialsProvider(who)).build();
    }

    static void same(Object got, Object expected) {
        if (!got.equals(expected)) throw new AssertionError(got + "\n is not\n" + expected);
    }

    static Map<String, AttributeValue> item(String pk, int number) {
        return Map.of("pk", new AttributeValue(pk), "sk", new AttributeValue(String.format("%02d", number)),
            "n", new AttributeValue().withN("" + number), "text", new AttributeValue("ä  ☃\t".repeat(50)));
    }

    static void play(AmazonDynamoDB client, String table, String pk) {
        var items = IntStream.range(0, 20).mapToObj(number -> item(pk, number)).collect(Collectors.toList());
        var keys = items.stream().map(item -> Map.of("pk", item.get("pk"), "sk", item.get("sk"))).collect(Collectors.toList());
        client.putItem(table, items.get(0));
        same(client.getItem(table, keys.get(0)).getItem(), items.get(0));
        var one = Map.of(":one", new AttributeValue().withN("1"));
        var added = client.updateItem(new UpdateItemRequest().withTableName(table).withKey(keys.get(0)).withUpdateExpression("ADD n :one")
            .withExpressionAttributeValues(one).withReturnValues("UPDATED_NEW")).getAttributes();
        same(added, Map.of("n", one.get(":one")));
        var puts = items.stream().limit(15).map(item -> new WriteRequest(new PutRequest(item))).collect(Collectors.toList());
        same(client.batchWriteItem(Map.of(table, puts)).getUnprocessedItems(), Map.of());
        client.transactWriteItems(new TransactWriteItemsRequest().withTransactItems(items.stream().skip(15)
            .map(item -> new TransactWriteItem().withPut(new Put().withTableName(table).withItem(item))).collect(Collectors.toList())));
        var pages = new ArrayList<List<Map<String, AttributeValue>>>();
        var query = new QueryRequest(table).withKeyConditionExpression("pk = :p").withLimit(7)
            .withExpressionAttributeValues(Map.of(":p", new AttributeValue(pk)));
        do {
            var page = client.query(query);
            pages.add(page.getItems());
            query.setExclusiveStartKey(page.getLastEvaluatedKey());
        } while (query.getExclusiveStartKey() != null);
        same(pages, List.of(items.subList(0, 7), items.subList(7, 14), items.subList(14, 20)));
        var many = client.batchGetItem(Map.of(table, new KeysAndAttributes().withKeys(keys))).getResponses().get(table);
        same(new HashSet<>(many), new HashSet<>(items));
        var all = client.transactGetItems(new TransactGetItemsRequest().withTransactItems(keys.stream()
            .map(key -> new TransactGetItem().withGet(new Get().withTableName(table).withKey(key))).collect(Collectors.toList())));
        same(all.getResponses().stream().map(ItemResponse::getItem).collect(Collectors.toList()), items);
    }

    static AmazonServiceException refusal(AWSCredentials who, ClientConfiguration settings, String pk) {
        try {
            as(who, settings).putItem("Scores", item(pk, 0));
        } catch (AmazonServiceException refused) {
            return refused;
        }
        throw new AssertionError("it is not refused");
    }

    /** Signs in the query. */
    public static final class Presigner extends AWS4Signer {
        @Override
        public void sign(SignableRequest<?> request, AWSCredentials who) {
            setServiceName("dynamodb");
            presignRequest(request, who, new Date(System.currentTimeMillis() + 60_000));
        }
    }

    public static void main(String[] arguments) throws Exception {
        endpoint = arguments[0];
        var trusted = KeyStore.getInstance(KeyStore.getDefaultType());
        trusted.load(null);
        try (var file = new FileInputStream(arguments[1])) {
            trusted.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        var managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        managers.init(trusted);
        tls = SSLContext.getInstance("TLS");
        tls.init(null, managers.getTrustManagers(), null);

        for (var table : List.of("Scores", "Plain")) {
            for (var gzip : List.of(false, true)) {
                play(as(ADMIN, new ClientConfiguration().withGzip(gzip)), table, "team1#java/key/" + gzip);
                play(as(TEAM, new ClientConfiguration().withGzip(gzip)), table, "team1#java/token/" + gzip);
            }
        }
        for (var one : Map.of(
            new BasicAWSCredentials("admin", "wrong"), "InvalidSignatureException",
            new BasicSessionCredentials("team1", "wrong", "token/+=="), "InvalidSignatureException",
            new BasicAWSCredentials("team1", "team"), "UnrecognizedClientException",
            new BasicSessionCredentials("team1", "team", "another"), "UnrecognizedClientException",
            new BasicAWSCredentials("nobody", "admin/+secret"), "UnrecognizedClientException").entrySet()) {
            same(refusal(one.getKey(), new ClientConfiguration(), "team1#x").getErrorCode(), one.getValue());
        }
        same(refusal(TEAM, new ClientConfiguration(), "team2#x").getErrorCode(), "AccessDeniedException");
        SignerFactory.registerSigner("presigner", Presigner.class);
        var presigned = refusal(ADMIN, new ClientConfiguration().withSignerOverride("presigner"), "team1#x");
        same(presigned.getErrorCode(), "IncompleteSignatureException");
        same(presigned.getErrorMessage().contains("presigned"), true);
    }
}
