// The AWS SDK for Go 2 as applications use it: attributevalue, the expression builder, paginators, scans in segments, batches, transactions and
// optimistic locking. `v2 ENDPOINT SECONDS` plays rounds for so long, and one at least, while keys may be moved. It ends with 1 where something is
// otherwise.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"reflect"
	"sort"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

type attributes = map[string]types.AttributeValue

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
	client     *dynamodb.Client
	background = context.Background()
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

func key(one score) attributes {
	return attributes{"game": &types.AttributeValueMemberS{Value: one.Game}, "player": &types.AttributeValueMemberS{Value: one.Player}}
}

func item(one score) attributes {
	made, err := attributevalue.MarshalMap(one)
	must(err)
	return made
}

// read gives the scores, whose sets have no order.
func read(items []attributes) []score {
	var scores []score
	must(attributevalue.UnmarshalListOfMaps(items, &scores))
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
		var puts []types.WriteRequest
		for at := from; at < from+25 && at < len(scores); at++ {
			puts = append(puts, types.WriteRequest{PutRequest: &types.PutRequest{Item: item(scores[at])}})
		}
		for left := map[string][]types.WriteRequest{table: puts}; len(left) > 0; {
			done, err := client.BatchWriteItem(background, &dynamodb.BatchWriteItemInput{RequestItems: left})
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
		ExpressionAttributeValues: asked.Values(), ScanIndexForward: &forward, ConsistentRead: aws.Bool(true), Limit: aws.Int32(page),
	}
}

// queries reads forward by a paginator, and backward from a cursor that another query gave.
func queries(table string, expected []score) {
	var all []score
	var sizes []int
	for pages := dynamodb.NewQueryPaginator(client, query(table, expected[0].Game, true)); pages.HasMorePages(); {
		one, err := pages.NextPage(background)
		must(err)
		all, sizes = append(all, read(one.Items)...), append(sizes, len(one.Items))
	}
	same(all, expected)
	for at, size := range sizes[:len(sizes)-1] {
		same([]int{at, size}, []int{at, page})
	}
	backward := query(table, expected[0].Game, false)
	var back []score
	for {
		one, err := client.Query(background, backward)
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

// scans reads in three segments at once, each by a paginator, with a filter.
func scans(table string, expected []score) {
	filter := built(expression.NewBuilder().WithFilter(expression.Name("points").LessThan(expression.Value(500))))
	var guard sync.Mutex
	var all sync.WaitGroup
	found, times := map[string]score{}, 0
	for segment := int32(0); segment < 3; segment++ {
		all.Add(1)
		go func(segment int32) {
			defer all.Done()
			pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{
				TableName: &table, Segment: &segment, TotalSegments: aws.Int32(3), Limit: aws.Int32(page), ConsistentRead: aws.Bool(true),
				FilterExpression: filter.Filter(), ExpressionAttributeNames: filter.Names(), ExpressionAttributeValues: filter.Values(),
			})
			for pages.HasMorePages() {
				one, err := pages.NextPage(background)
				must(err)
				guard.Lock()
				for _, score := range read(one.Items) {
					found[score.Game+"/"+score.Player] = score
					times++
				}
				guard.Unlock()
			}
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
		var failed *types.ConditionalCheckFailedException
		return errors.As(err, &failed)
	}
	var all sync.WaitGroup
	for writer := 0; writer < writers; writer++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for step := 0; step < steps; {
				got, err := client.GetItem(background, &dynamodb.GetItemInput{TableName: &table, Key: key(one), ConsistentRead: aws.Bool(true)})
				must(err)
				seen := read([]attributes{got.Item})[0]
				change := built(expression.NewBuilder().
					WithUpdate(expression.Set(expression.Name("points"), expression.Name("points").Plus(expression.Value(1))).
						Set(expression.Name("version"), expression.Value(seen.Version+1))).
					WithCondition(expression.Name("version").Equal(expression.Value(seen.Version))))
				_, err = client.UpdateItem(background, &dynamodb.UpdateItemInput{
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
	got, err := client.GetItem(background, &dynamodb.GetItemInput{TableName: &table, Key: key(one), ConsistentRead: aws.Bool(true)})
	must(err)
	seen := read([]attributes{got.Item})[0]
	same([]int{seen.Points, seen.Version}, []int{one.Points + writers*steps, one.Version + writers*steps})
	put(table, []score{one})
}

// sets reads in a batch, and writes and is refused in transactions.
func sets(table string, expected []score) {
	var keys []attributes
	for _, one := range expected[:100] {
		keys = append(keys, key(one))
	}
	var found []score
	for asked := map[string]types.KeysAndAttributes{table: {Keys: keys, ConsistentRead: aws.Bool(true)}}; len(asked) > 0; {
		one, err := client.BatchGetItem(background, &dynamodb.BatchGetItemInput{RequestItems: asked})
		must(err)
		found, asked = append(found, read(one.Responses[table])...), one.UnprocessedKeys
	}
	sort.Slice(found, func(one, other int) bool { return found[one].Player < found[other].Player })
	same(found, expected[:100])

	first, second := expected[0], expected[1]
	first.Note, second.Note = "one", "two"
	isNew := built(expression.NewBuilder().WithCondition(expression.Name("note").AttributeNotExists()))
	write := func(one score) types.TransactWriteItem {
		return types.TransactWriteItem{Put: &types.Put{
			TableName: &table, Item: item(one), ConditionExpression: isNew.Condition(), ExpressionAttributeNames: isNew.Names(),
		}}
	}
	// A move may be in the way of a transaction, which is then cancelled by a conflict: it is sent again, as the SDK says.
	send := func(all ...types.TransactWriteItem) ([]string, error) {
		for {
			_, err := client.TransactWriteItems(background, &dynamodb.TransactWriteItemsInput{TransactItems: all})
			var cancelled *types.TransactionCanceledException
			if !errors.As(err, &cancelled) {
				return nil, err
			}
			var why []string
			again := false
			for _, reason := range cancelled.CancellationReasons {
				why = append(why, aws.ToString(reason.Code))
				again = again || aws.ToString(reason.Code) == "TransactionConflict"
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
	got, err := client.TransactGetItems(background, &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{
		{Get: &types.Get{TableName: &table, Key: key(second)}}, {Get: &types.Get{TableName: &table, Key: key(third)}},
	}})
	must(err)
	same(read([]attributes{got.Responses[0].Item, got.Responses[1].Item}), []score{second, expected[2]})
	put(table, expected[:3])
}

func main() {
	seconds, err := strconv.Atoi(os.Args[2])
	must(err)
	client = dynamodb.New(dynamodb.Options{
		Region: "us-east-1", EndpointResolver: dynamodb.EndpointResolverFromURL(os.Args[1]),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
		}),
	})
	table := fmt.Sprint("GoTwo", time.Now().UnixNano())
	_, err = client.CreateTable(background, &dynamodb.CreateTableInput{
		TableName: &table, BillingMode: types.BillingModePayPerRequest,
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("game"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String("player"), KeyType: types.KeyTypeRange},
		},
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("game"), AttributeType: types.ScalarAttributeTypeS}, {AttributeName: aws.String("player"), AttributeType: types.ScalarAttributeTypeS},
		},
	})
	must(err)
	named := &dynamodb.DescribeTableInput{TableName: &table}
	must(dynamodb.NewTableExistsWaiter(client).Wait(background, named, time.Minute))
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
	_, err = client.DeleteTable(background, &dynamodb.DeleteTableInput{TableName: &table})
	must(err)
	must(dynamodb.NewTableNotExistsWaiter(client).Wait(background, named, time.Minute))
	fmt.Println(rounds, "rounds")
}
