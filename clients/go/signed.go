// The AWS SDK for Go 2 through a gateway that knows its clients (signed.toml), over TLS: `signed ENDPOINT CA`. It ends with 1 where something is
// otherwise.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"net/http"
	"os"
	"reflect"
	"sort"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

type item = map[string]types.AttributeValue

var (
	background = context.Background()
	admin      = aws.Credentials{AccessKeyID: "admin", SecretAccessKey: "admin/+secret"}
	team       = aws.Credentials{AccessKeyID: "team1", SecretAccessKey: "team", SessionToken: "token/+=="}
	endpoint   string
	overTLS    *http.Client
)

func must(err error) {
	if err != nil {
		log.Panic(err)
	}
}

func same(got, expected interface{}) {
	if !reflect.DeepEqual(got, expected) {
		log.Panicf("%v\n is not\n%v", got, expected)
	}
}

// checked compares each answer with its checksum, for the SDK drops what it finds there, and looks for what the SDK adds to requests.
type checked struct{ http.Transport }

func (over *checked) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := over.Transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	must(err)
	answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(body))
	same(answer.Header.Get("X-Amz-Crc32"), fmt.Sprint(crc32.ChecksumIEEE(body)))
	same(request.Header.Get("Amz-Sdk-Request") != "" || request.URL.RawQuery != "", true)
	return answer, nil
}

func as(who aws.Credentials, gzip bool) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "us-east-1", EndpointResolver: dynamodb.EndpointResolverFromURL(endpoint), HTTPClient: overTLS,
		EnableAcceptEncodingGzip: gzip, RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return who, nil }),
	})
}

func text(value string) types.AttributeValue { return &types.AttributeValueMemberS{Value: value} }

func number(value int) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(value)}
}

func play(client *dynamodb.Client, table, pk string) {
	items, keys, name := []item{}, []item{}, aws.String(table)
	var puts []types.WriteRequest
	var all []types.TransactWriteItem
	var gets []types.TransactGetItem
	for n := 0; n < 20; n++ {
		key := item{"pk": text(pk), "sk": text(fmt.Sprintf("%02d", n))}
		one := item{"pk": key["pk"], "sk": key["sk"], "n": number(n), "text": text(strings.Repeat("ä  ☃\t", 50))}
		items, keys = append(items, one), append(keys, key)
		gets = append(gets, types.TransactGetItem{Get: &types.Get{TableName: name, Key: key}})
		if n < 15 {
			puts = append(puts, types.WriteRequest{PutRequest: &types.PutRequest{Item: one}})
		} else {
			all = append(all, types.TransactWriteItem{Put: &types.Put{TableName: name, Item: one}})
		}
	}
	_, err := client.PutItem(background, &dynamodb.PutItemInput{TableName: name, Item: items[0]})
	must(err)
	got, err := client.GetItem(background, &dynamodb.GetItemInput{TableName: name, Key: keys[0]})
	must(err)
	same(got.Item, items[0])
	added, err := client.UpdateItem(background, &dynamodb.UpdateItemInput{
		TableName: name, Key: keys[0], UpdateExpression: aws.String("ADD n :one"), ReturnValues: types.ReturnValueUpdatedNew,
		ExpressionAttributeValues: item{":one": number(1)},
	})
	must(err)
	same(added.Attributes, item{"n": number(1)})
	written, err := client.BatchWriteItem(background, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{table: puts}})
	must(err)
	same(len(written.UnprocessedItems), 0)
	_, err = client.TransactWriteItems(background, &dynamodb.TransactWriteItemsInput{TransactItems: all})
	must(err)

	var pages [][]item
	for asked := dynamodb.NewQueryPaginator(client, &dynamodb.QueryInput{
		TableName: name, KeyConditionExpression: aws.String("pk = :p"), ExpressionAttributeValues: item{":p": text(pk)}, Limit: aws.Int32(7),
	}); asked.HasMorePages(); {
		page, err := asked.NextPage(background)
		must(err)
		pages = append(pages, page.Items)
	}
	same(pages, [][]item{items[:7], items[7:14], items[14:]})
	many, err := client.BatchGetItem(background, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{table: {Keys: keys}}})
	must(err)
	found := many.Responses[table]
	place := func(one item) string { return one["sk"].(*types.AttributeValueMemberS).Value }
	sort.Slice(found, func(one, other int) bool { return place(found[one]) < place(found[other]) })
	same(found, items)
	read, err := client.TransactGetItems(background, &dynamodb.TransactGetItemsInput{TransactItems: gets})
	must(err)
	for at, answer := range read.Responses {
		same(answer.Item, items[at])
	}
}

func refused(who aws.Credentials, pk, expected string) {
	put := &dynamodb.PutItemInput{TableName: aws.String("Scores"), Item: item{"pk": text(pk), "sk": text("x")}}
	_, err := as(who, false).PutItem(background, put)
	var told smithy.APIError
	if !errors.As(err, &told) {
		log.Panic(err)
	}
	same(told.ErrorCode(), expected)
}

func presigned() {
	request, err := http.NewRequest("POST", endpoint+"/", strings.NewReader("{}"))
	must(err)
	request.Header.Set("content-type", "application/x-amz-json-1.0")
	request.Header.Set("x-amz-target", "DynamoDB_20120810.ListTables")
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte("{}")))
	url, signed, err := v4.NewSigner().PresignHTTP(background, admin, request, hash, "dynamodb", "us-east-1", time.Now())
	must(err)
	sent, err := http.NewRequest("POST", url, strings.NewReader("{}"))
	must(err)
	sent.Header = signed
	answer, err := overTLS.Do(sent)
	must(err)
	body, err := io.ReadAll(answer.Body)
	must(err)
	same(answer.StatusCode, 400)
	same(strings.Contains(string(body), "IncompleteSignatureException") && strings.Contains(string(body), "presigned"), true)
}

func main() {
	endpoint = os.Args[1]
	ca, err := os.ReadFile(os.Args[2])
	must(err)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(ca)
	overTLS = &http.Client{Transport: &checked{http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}}
	for _, table := range []string{"Scores", "Plain"} {
		for _, gzip := range []bool{false, true} {
			play(as(admin, gzip), table, fmt.Sprint("team1#go/key/", gzip))
			play(as(team, gzip), table, fmt.Sprint("team1#go/token/", gzip))
		}
	}
	refused(aws.Credentials{AccessKeyID: "admin", SecretAccessKey: "wrong"}, "team1#x", "InvalidSignatureException")
	refused(aws.Credentials{AccessKeyID: "team1", SecretAccessKey: "wrong", SessionToken: "token/+=="}, "team1#x", "InvalidSignatureException")
	refused(aws.Credentials{AccessKeyID: "team1", SecretAccessKey: "team"}, "team1#x", "UnrecognizedClientException")
	refused(aws.Credentials{AccessKeyID: "team1", SecretAccessKey: "team", SessionToken: "another"}, "team1#x", "UnrecognizedClientException")
	refused(aws.Credentials{AccessKeyID: "nobody", SecretAccessKey: "admin/+secret"}, "team1#x", "UnrecognizedClientException")
	refused(team, "team2#x", "AccessDeniedException")
	presigned()
}
