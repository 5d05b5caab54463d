package logical

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
)

type form struct {
	Kind     string
	Reserved map[string]int
	Rules    []struct {
		Template, Keys, Bucket string
		Shards                 int
	}
}

type row struct {
	Form    form
	Value   map[string]any
	Logical map[string]any
	Shard   int
	Bucket  string
	Record  map[string]any
	Table   struct {
		Key        string
		Form       form
		Attributes map[string]form
		Counters   []string
	}
}

func glob(text string) func(string) bool {
	return func(key string) bool {
		if prefix := strings.TrimSuffix(text, "*"); prefix != text {
			return strings.HasPrefix(key, prefix)
		}
		return key == text
	}
}

func (said form) form() Form {
	switch said.Kind {
	case "buckets":
		return Buckets
	case "whole":
		return Whole
	case "recorded":
		return Recorded(func(key string) int { return said.Reserved[key] })
	case "templates":
		var rules []Rule
		for _, one := range said.Rules {
			rules = append(rules, Rule{one.Template, one.Shards, one.Bucket, glob(one.Keys)})
		}
		return Templates(rules...)
	}
	return Suffix
}

func rows(t *testing.T) (rows []row) {
	file, err := os.ReadFile("../vectors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(file)), "\n") {
		var one row
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err, line)
		}
		rows = append(rows, one)
	}
	return
}

func bytes(t *testing.T, value map[string]any) []byte {
	raw, err := base64.StdEncoding.DecodeString(value["B"].(string))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestKeys(t *testing.T) {
	keys := 0
	for _, row := range rows(t) {
		if row.Value == nil {
			continue
		}
		keys++
		form := row.Form.form()
		value, shard, bucket := Value(row.Value, form)
		if !reflect.DeepEqual(value, row.Logical) || shard != row.Shard || bucket != row.Bucket {
			t.Errorf("found %q, %d, %q in %+v", value, shard, bucket, row)
		}
		if row.Value["B"] != nil {
			value, _, _ := Value(map[string]any{"B": bytes(t, row.Value)}, form)
			if string(value["B"].([]byte)) != string(bytes(t, row.Logical)) {
				t.Errorf("found bytes %q in %+v", value, row)
			}
		}
	}
	if keys <= 500 {
		t.Errorf("%d keys", keys)
	}
}

func TestRecords(t *testing.T) {
	records := 0
	for _, row := range rows(t) {
		if row.Record == nil {
			continue
		}
		records++
		table := Table{Key: row.Table.Key, Form: row.Table.Form.form(), Attributes: map[string]Form{}}
		for name, form := range row.Table.Attributes {
			table.Attributes[name] = form.form()
		}
		table.IsCounter = func(key string) bool {
			return strings.Contains("\x00"+strings.Join(row.Table.Counters, "\x00")+"\x00", "\x00"+key+"\x00")
		}
		before, _ := json.Marshal(row.Record)
		if found := Record(row.Record, table); !reflect.DeepEqual(found, row.Logical) {
			t.Errorf("found %v in %+v", found, row)
		}
		if after, _ := json.Marshal(row.Record); string(after) != string(before) {
			t.Errorf("the record that was given is changed: %s", before)
		}
	}
	if records <= 20 {
		t.Errorf("%d records", records)
	}
}
