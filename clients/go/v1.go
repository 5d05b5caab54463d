// The AWS SDK for Go 1 as applications use it: dynamodbattribute, the expression builder, QueryPages, ScanPages in segments, batches, transactions and
// optimistic locking. `v1 ENDPOINT SECONDS` plays rounds for so long, and one at least, while keys may be moved. It ends with 1 where something is
// otherwise.
package main

import (
	"fmt"
	"log"
	"os"
	"reflect"
	"sort"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go/aws"
	"github.com/aws/aws-sdk-go/aws/awserr"
	"github.com/aws/aws-sdk-go/aws/credentials"
	"github.com/aws/aws-sdk-go/aws/session"
	"github.com/aws/aws-sdk-go/service/dynamodb"
	"github.com/aws/aws-sdk-go/service/dynamodb/dynamodbattribute"
	"github.com/aws/aws-sdk-go/service/dynamodb/expression"
)

type score struct {
	Game    string          `dynamodbav:"game"`
	Player  string          `dynamodbav:"player"`
	Points  int             `dynamodbav:"points"`
	Tags    []string        `dynamodbav:"tags,stringset"`
	Seen    map[string]bool `dynamodbav:"seen"`
	Raw     []byte          `dynamodbav:"raw"`
	Version int             `dynamodbav:"version"`
	Note    string          `dynamodbav:"note,omitempty"`
}

const (
	players = 120
	page    = 17
	writers = 4
	steps   = 5
)

var (
	client *dynamodb.DynamoDB
	// Whether keys are moved meanwhile: a Scan may then show items twice (docs/reference/tested-with.md).
	moving = os.Getenv("HEATSINK_BEGINS_AGAIN") != ""
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

func of(game string, number int) score {
	return score{
		Game: game, Player: fmt.Sprintf("p%04d", number), Points: number * 7919 % 1009, Tags: []string{"a", fmt.Sprint("t", number%3)},
		Seen: map[string]bool{"today": number%2 == 0}, Raw: []byte{0, byte(number), 255}, Version: 1,
	}
}

func key(one score) map[string]*dynamodb.AttributeValue {
	return map[string]*dynamodb.AttributeValue{"game": {S: &one.Game}, "player": {S: &one.Player}}
}

func item(one score) map[string]*dynamodb.AttributeValue {
	made, err := dynamodbattribute.MarshalMap(one)
	must(err)
	return made
}

// read gives the scores, whose sets have no order.
func read(items []map[string]*dynamodb.AttributeValue) []score {
	var scores []score
	must(dynamodbattribute.UnmarshalListOfMaps(items, &scores))
	for _, one := range scores {
		sort.Strings(one.Tags)
	}
	return scores
}

func built(builder expression.Builder) expression.Expression {
	made, err := builder.Build()
	must(err)
	return made
}

func put(table string, scores []score) {
	for from := 0; from < len(scores); from += 25 {
		var puts []*dynamodb.WriteRequest
		for at := from; at < from+25 && at < len(scores); at++ {
			puts = append(puts, &dynamodb.WriteRequest{PutRequest: &dynamodb.PutRequest{Item: item(scores[at])}})
		}
		for left := map[string][]*dynamodb.WriteRequest{table: puts}; len(left) > 0; {
			done, err := client.BatchWriteItem(&dynamodb.BatchWriteItemInput{RequestItems: left})
			must(err)
			left = done.UnprocessedItems
		}
	}
}

func query(table, game string, forward bool) *dynamodb.QueryInput {
	asked := built(expression.NewBuilder().WithKeyCondition(expression.Key("game").Equal(expression.Value(game)).
		And(expression.Key("player").BeginsWith("p"))))
	return &dynamodb.QueryInput{
		TableName: &table, KeyConditionExpression: asked.KeyCondition(), ExpressionAttributeNames: asked.Names(),
		ExpressionAttributeValues: asked.Values(), ScanIndexForward: &forward, ConsistentRead: aws.Bool(true), Limit: aws.Int64(page),
	}
}

// queries reads forward by QueryPages, and backward from a cursor that another query gave.
func queries(table string, expected []score) {
	var all []score
	var sizes []int
	must(client.QueryPages(query(table, expected[0].Game, true), func(one *dynamodb.QueryOutput, last bool) bool {
		all, sizes = append(all, read(one.Items)...), append(sizes, len(one.Items))
		return true
	}))
	same(all, expected)
	for at, size := range sizes[:len(sizes)-1] {
		same([]int{at, size}, []int{at, page})
	}
	backward := query(table, expected[0].Game, false)
	var back []score
	for {
		one, err := client.Query(backward)
		must(err)
		back = append(back, read(one.Items)...)
		if one.LastEvaluatedKey == nil {
			break
		}
		backward = query(table, expected[0].Game, false)
		backward.ExclusiveStartKey = one.LastEvaluatedKey
	}
	for at := range back {
		same(back[at], expected[len(expected)-1-at])
	}
	same(len(back), len(expected))
}

// scans reads in three segments at once, each by ScanPages, with a filter.
func scans(table string, expected []score) {
	filter := built(expression.NewBuilder().WithFilter(expression.Name("points").LessThan(expression.Value(500))))
	var guard sync.Mutex
	var all sync.WaitGroup
	found, times := map[string]score{}, 0
	for segment := int64(0); segment < 3; segment++ {
		all.Add(1)
		go func(segment int64) {
			defer all.Done()
			must(client.ScanPages(&dynamodb.ScanInput{
				TableName: &table, Segment: &segment, TotalSegments: aws.Int64(3), Limit: aws.Int64(page), ConsistentRead: aws.Bool(true),
				FilterExpression: filter.Filter(), ExpressionAttributeNames: filter.Names(), ExpressionAttributeValues: filter.Values(),
			}, func(one *dynamodb.ScanOutput, last bool) bool {
				guard.Lock()
				defer guard.Unlock()
				for _, score := range read(one.Items) {
					found[score.Game+"/"+score.Player] = score
					times++
				}
				return true
			}))
		}(segment)
	}
	all.Wait()
	wanted := map[string]score{}
	for _, one := range expected {
		if one.Points < 500 {
			wanted[one.Game+"/"+one.Player] = one
		}
	}
	same(found, wanted)
	if !moving {
		same(times, len(wanted))
	}
}

// locks has several writers add to one item, each under the version that it has read.
func locks(table string, one score) {
	refused := func(err error) bool {
		failed, is := err.(awserr.Error)
		return is && failed.Code() == dynamodb.ErrCodeConditionalCheckFailedException
	}
	var all sync.WaitGroup
	for writer := 0; writer < writers; writer++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for step := 0; step < steps; {
				got, err := client.GetItem(&dynamodb.GetItemInput{TableName: &table, Key: key(one), ConsistentRead: aws.Bool(true)})
				must(err)
				seen := read([]map[string]*dynamodb.AttributeValue{got.Item})[0]
				change := built(expression.NewBuilder().
					WithUpdate(expression.Set(expression.Name("points"), expression.Name("points").Plus(expression.Value(1))).
						Set(expression.Name("version"), expression.Value(seen.Version+1))).
					WithCondition(expression.Name("version").Equal(expression.Value(seen.Version))))
				_, err = client.UpdateItem(&dynamodb.UpdateItemInput{
					TableName: &table, Key: key(one), UpdateExpression: change.Update(), ConditionExpression: change.Condition(),
					ExpressionAttributeNames: change.Names(), ExpressionAttributeValues: change.Values(),
				})
				if err == nil {
					step++
				} else if !refused(err) {
					log.Panic(err)
				}
			}
		}()
	}
	all.Wait()
	got, err := client.GetItem(&dynamodb.GetItemInput{TableName: &table, Key: key(one), ConsistentRead: aws.Bool(true)})
	must(err)
	seen := read([]map[string]*dynamodb.AttributeValue{got.Item})[0]
	same([]int{seen.Points, seen.Version}, []int{one.Points + writers*steps, one.Version + writers*steps})
	put(table, []score{one})
}

// sets reads in a batch, and writes and is refused in transactions.
func sets(table string, expected []score) {
	var keys []map[string]*dynamodb.AttributeValue
	for _, one := range expected[:100] {
		keys = append(keys, key(one))
	}
	var found []score
	asked := map[string]*dynamodb.KeysAndAttributes{table: {Keys: keys, ConsistentRead: aws.Bool(true)}}
	must(client.BatchGetItemPages(&dynamodb.BatchGetItemInput{RequestItems: asked}, func(one *dynamodb.BatchGetItemOutput, last bool) bool {
		found = append(found, read(one.Responses[table])...)
		return true
	}))
	sort.Slice(found, func(one, other int) bool { return found[one].Player < found[other].Player })
	same(found, expected[:100])

	first, second := expected[0], expected[1]
	first.Note, second.Note = "one", "two"
	isNew := built(expression.NewBuilder().WithCondition(expression.Name("note").AttributeNotExists()))
	write := func(one score) *dynamodb.TransactWriteItem {
		return &dynamodb.TransactWriteItem{Put: &dynamodb.Put{
			TableName: &table, Item: item(one), ConditionExpression: isNew.Condition(), ExpressionAttributeNames: isNew.Names(),
		}}
	}
	// A move may be in the way of a transaction, which is then cancelled by a conflict: it is sent again, as the SDK says.
	send := func(all ...*dynamodb.TransactWriteItem) ([]string, error) {
		for {
			_, err := client.TransactWriteItems(&dynamodb.TransactWriteItemsInput{TransactItems: all})
			cancelled, is := err.(*dynamodb.TransactionCanceledException)
			if !is {
				return nil, err
			}
			var why []string
			again := false
			for _, reason := range cancelled.CancellationReasons {
				why = append(why, aws.StringValue(reason.Code))
				again = again || aws.StringValue(reason.Code) == "TransactionConflict"
			}
			if !again {
				return why, nil
			}
		}
	}
	why, err := send(write(first), write(second))
	must(err)
	same(len(why), 0)
	third := expected[2]
	third.Note = "three"
	why, err = send(write(third), write(second))
	must(err)
	same(why, []string{"None", "ConditionalCheckFailed"})
	got, err := client.TransactGetItems(&dynamodb.TransactGetItemsInput{TransactItems: []*dynamodb.TransactGetItem{
		{Get: &dynamodb.Get{TableName: &table, Key: key(second)}}, {Get: &dynamodb.Get{TableName: &table, Key: key(third)}},
	}})
	must(err)
	same(read([]map[string]*dynamodb.AttributeValue{got.Responses[0].Item, got.Responses[1].Item}), []score{second, expected[2]})
	put(table, expected[:3])
}

func main() {
	seconds, err := strconv.Atoi(os.Args[2])
	must(err)
	client = dynamodb.New(session.Must(session.NewSession(&aws.Config{
		Endpoint: &os.Args[1], Region: aws.String("us-east-1"), Credentials: credentials.NewStaticCredentials("local", "local", ""),
	})))
	table := fmt.Sprint("GoOne", time.Now().UnixNano())
	_, err = client.CreateTable(&dynamodb.CreateTableInput{
		TableName: &table, BillingMode: aws.String("PAY_PER_REQUEST"),
		KeySchema: []*dynamodb.KeySchemaElement{
			{AttributeName: aws.String("game"), KeyType: aws.String("HASH")}, {AttributeName: aws.String("player"), KeyType: aws.String("RANGE")},
		},
		AttributeDefinitions: []*dynamodb.AttributeDefinition{
			{AttributeName: aws.String("game"), AttributeType: aws.String("S")}, {AttributeName: aws.String("player"), AttributeType: aws.String("S")},
		},
	})
	must(err)
	named := &dynamodb.DescribeTableInput{TableName: &table}
	must(client.WaitUntilTableExists(named))
	var hot, cold []score
	for number := 0; number < players; number++ {
		hot = append(hot, of("hot", number))
	}
	for number := 0; number < 5; number++ {
		cold = append(cold, of("cold", number))
	}
	put(table, append(append([]score{}, hot...), cold...))
	rounds := 0
	for end := time.Now().Add(time.Duration(seconds) * time.Second); rounds == 0 || time.Now().Before(end); rounds++ {
		queries(table, hot)
		queries(table, append([]score{}, cold...))
		scans(table, append(append([]score{}, hot...), cold...))
		locks(table, hot[players-1])
		sets(table, hot)
	}
	_, err = client.DeleteTable(&dynamodb.DeleteTableInput{TableName: &table})
	must(err)
	must(client.WaitUntilTableNotExists(named))
	fmt.Println(rounds, "rounds")
}
