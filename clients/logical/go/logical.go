// Package logical reads the logical keys of what is read past Heatsink: records of a DynamoDB Stream, of Kinesis, items of an export. Copy this
// one file.
//
//	logical.String("game_x#~3", logical.Suffix)                  // Key{Value: "game_x", Shard: 3}
//	logical.Record(one, logical.Table{Key: "pk"})                // the stream record with logical keys; nil for what is no change of an item
//
// How physical keys are written is a Form: Suffix under rules (numbers included), Buckets where a rule has buckets, Whole where rules name only
// indexes, Recorded(...) where no rule names the table's keys and single ones were resharded, Templates(...) where a rule has a template. It is
// told, not guessed: game_x#~3 is a client's own key in a table that is not sharded.
//
// Records and values are DynamoDB JSON as encoding/json reads it; binary values in them are base64 or []byte, and come back as they came.
package logical

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The attribute of an old copy.
const moved = "heatsink:moved"

// Key is a logical key: text, a number in canonical text, or the bytes of a binary one. The bucket is as ISO 8601 writes it (2026-06-22), or empty.
type Key struct {
	Value  string
	Shard  int
	Bucket string
}

// Form says how physical keys are written. The zero value is Suffix.
type Form struct {
	kind     string
	reserved func(key string) int
	rules    []Rule
}

var (
	Suffix  = Form{}
	Buckets = Form{kind: "buckets"}
	Whole   = Form{kind: "whole"}
)

// Recorded is where only keys on record have shards: reserved gives the "reserved" of `heatsink reshard status TABLE --output json`, 0 for other
// keys. Keys are given as it prints them: binary ones in base64, numbers in canonical text. A function that always returns 65536 takes every key
// that is written like a shard for one: right where no client has keys that end in #~ and a number.
func Recorded(reserved func(key string) int) Form { return Form{kind: "recorded", reserved: reserved} }

// Templates has the table's rules in their order, where one of them has a template.
func Templates(rules ...Rule) Form { return Form{kind: "templates", rules: rules} }

// Rule is a rule of a table with templates. One without a template keeps its keys whole.
type Rule struct {
	Template string
	Shards   int
	Bucket   string                // "hour", "day", "week", "month" or empty
	Keys     func(key string) bool // which logical keys it names; nil for all
}

// Table says how the items of a table are stored.
type Table struct {
	Key        string                // the partition key's name
	Form       Form                  // how it is written
	Attributes map[string]Form       // spread keys of indexes: Suffix by a rule, Recorded(...) by `reshard --index`
	IsCounter  func(key string) bool // which logical keys hold counters; nil for none
}

// String reads a physical key that is a string.
func String(physical string, form Form) Key { return decode(physical, 'S', form) }

// Number reads a physical key that is a number.
func Number(physical string, form Form) Key { return decode(canonical(physical), 'N', form) }

// Binary reads the bytes of a physical key.
func Binary(physical []byte, form Form) Key { return decode(string(physical), 'B', form) }

// Value reads an attribute value: the logical one, its shard and its bucket.
func Value(value map[string]any, form Form) (map[string]any, int, string) {
	switch {
	case value["S"] != nil:
		key := String(value["S"].(string), form)
		return map[string]any{"S": key.Value}, key.Shard, key.Bucket
	case value["N"] != nil:
		key := Number(value["N"].(string), form)
		return map[string]any{"N": key.Value}, key.Shard, key.Bucket
	case value["B"] != nil:
		if raw, isRaw := value["B"].([]byte); isRaw {
			key := Binary(raw, form)
			return map[string]any{"B": []byte(key.Value)}, key.Shard, key.Bucket
		}
		raw, err := base64.StdEncoding.DecodeString(value["B"].(string))
		if err != nil {
			return value, 0, ""
		}
		key := Binary(raw, form)
		return map[string]any{"B": named(key.Value, 'B')}, key.Shard, key.Bucket
	}
	return value, 0, ""
}

// Record gives a stream record logical keys in Keys, NewImage and OldImage; nil if it is of a part of a counter, which is no item of its own, or of
// the old copy of an item that moved to another shard.
func Record(record map[string]any, table Table) map[string]any {
	change := copied(record["dynamodb"].(map[string]any))
	for _, image := range []string{"NewImage", "OldImage"} {
		if stored, has := change[image].(map[string]any); has && stored[moved] != nil {
			return nil
		}
	}
	stored := change["Keys"].(map[string]any)[table.Key].(map[string]any)
	key, shard, bucket := Value(stored, table.Form)
	if (shard > 0 || bucket != "") && table.IsCounter != nil && table.IsCounter(text(key)) {
		return nil
	}
	for _, image := range []string{"Keys", "NewImage", "OldImage"} {
		if stored, has := change[image].(map[string]any); has {
			change[image] = Item(stored, table)
		}
	}
	changed := copied(record)
	changed["dynamodb"] = change
	return changed
}

// Item gives an item its logical key, and logical values of the keys of indexes; numbers of these are never spread.
func Item(stored map[string]any, table Table) map[string]any {
	changed := copied(stored)
	for name, form := range table.Attributes {
		if value, has := stored[name].(map[string]any); has && (value["S"] != nil || value["B"] != nil) {
			changed[name], _, _ = Value(value, form)
		}
	}
	if value, has := stored[table.Key].(map[string]any); has {
		changed[table.Key], _, _ = Value(value, table.Form)
	}
	return changed
}

func copied(object map[string]any) map[string]any {
	same := make(map[string]any, len(object))
	for name, value := range object {
		same[name] = value
	}
	return same
}

// The key in an attribute value as callers know it.
func text(value map[string]any) string {
	for _, stored := range value {
		if raw, isRaw := stored.([]byte); isRaw {
			return named(string(raw), 'B')
		}
		return stored.(string)
	}
	return ""
}

// A key as callers know it.
func named(key string, kind byte) string {
	if kind == 'B' {
		return base64.StdEncoding.EncodeToString([]byte(key))
	}
	return key
}

func decode(physical string, kind byte, form Form) Key {
	switch form.kind {
	case "whole":
		return Key{Value: physical}
	case "templates":
		return byTemplates(physical, kind, form.rules)
	}
	read := shardOf(physical)
	if kind == 'N' {
		read = shardOfNumber(physical)
	}
	if form.kind == "recorded" {
		if read.Shard < form.reserved(named(read.Value, kind)) {
			return read
		}
		return Key{Value: physical}
	}
	if kind == 'N' {
		return read
	}
	if form.kind == "buckets" {
		read.Value, read.Bucket = bucketOf(read.Value)
	}
	if inner, number := split(read.Value); number == 0 {
		_, further := split(inner)
		_, bucket := bucketOf(inner)
		if further >= 0 || form.kind == "buckets" && bucket != "" {
			read.Value = inner
		}
	}
	return read
}

var reserved = regexp.MustCompile(`#~(0|[1-9][0-9]{0,4})$`)

// What stands before #~ and a number, and that number; -1 if none stands there.
func split(key string) (string, int) {
	found := reserved.FindStringSubmatchIndex(key)
	if found == nil {
		return key, -1
	}
	return key[:found[0]], number(key[found[2]:])
}

// Of digits, few enough.
func number(digits string) int {
	value, _ := strconv.Atoi(digits)
	return value
}

func shardOf(physical string) Key {
	if before, shard := split(physical); shard >= 1 && shard <= 65535 {
		return Key{Value: before, Shard: shard}
	}
	return Key{Value: physical}
}

var formats = map[string]string{"hour": "%Y-%m-%dT%H", "day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m"}
var field = regexp.MustCompile(`%([YGmdHV])`)

// A pattern for the buckets of a format: a group for each field.
func pattern(format string) string {
	pattern, end := "", 0
	for _, at := range field.FindAllStringIndex(format, -1) {
		name, width := format[at[0]+1:at[1]], 2
		if name == "Y" || name == "G" {
			width = 4
		}
		pattern += regexp.QuoteMeta(format[end:at[0]]) + fmt.Sprintf("(?P<%s>[0-9]{%d})", name, width)
		end = at[1]
	}
	return pattern + regexp.QuoteMeta(format[end:])
}

var bucketPatterns = func() (patterns []*regexp.Regexp) {
	for _, format := range formats {
		patterns = append(patterns, regexp.MustCompile("#~"+pattern(format)+"$"))
	}
	return
}()

// What stands before #~ and a bucket, and that bucket.
func bucketOf(key string) (string, string) {
	for _, pattern := range bucketPatterns {
		if found := pattern.FindStringSubmatchIndex(key); found != nil {
			if bucket := calendar(groups(pattern, key)); bucket != "" {
				return key[:found[0]], bucket
			}
		}
	}
	return key, ""
}

// The groups of a pattern by their names, if it matches.
func groups(pattern *regexp.Regexp, text string) map[string]string {
	found := pattern.FindStringSubmatch(text)
	if found == nil {
		return nil
	}
	named := map[string]string{}
	for at, name := range pattern.SubexpNames() {
		named[name] = found[at]
	}
	return named
}

// The bucket of these fields as ISO 8601 writes it; empty if the calendar has none.
func calendar(has map[string]string) string {
	if has["G"] != "" {
		year, week, last := number(has["G"]), number(has["V"]), 52
		if lastWeekday(year) == 4 || lastWeekday(year-1) == 3 {
			last = 53
		}
		if week < 1 || week > last {
			return ""
		}
		return has["G"] + "-W" + has["V"]
	}
	year, month := number(has["Y"]), number(has["m"])
	days := [12]int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
		days[1] = 29
	}
	if month < 1 || month > 12 {
		return ""
	}
	bucket := has["Y"] + "-" + has["m"]
	if day := has["d"]; day != "" {
		if number(day) < 1 || number(day) > days[month-1] {
			return ""
		}
		bucket += "-" + day
	}
	if hour := has["H"]; hour != "" {
		if number(hour) > 23 {
			return ""
		}
		bucket += "T" + hour
	}
	return bucket
}

// The day of the week of a year's last day, from Sunday, 0. The calendar repeats after 400 years.
func lastWeekday(year int) int {
	year += 400
	return (year + year/4 - year/100 + year/400) % 7
}

var anyNumber = regexp.MustCompile(`^([+-]?)([0-9]*)\.?([0-9]*)(?:[eE]([+-]?)0*([0-9]{1,6}))?$`)

// A number as DynamoDB writes it: no exponent, no needless zeros. What is none is left as it is.
func canonical(text string) string {
	found := anyNumber.FindStringSubmatch(text)
	if found == nil || found[2]+found[3] == "" {
		return text
	}
	digits := strings.TrimLeft(found[2]+found[3], "0")
	kept := strings.TrimRight(digits, "0")
	exponent := number(found[4]+found[5]) - len(found[3]) + len(digits) - len(kept)
	point := len(kept) + exponent
	top := point - 1
	if kept == "" {
		top = exponent
	}
	if len(kept) > 38 || top < -130 || top > 125 {
		return text
	}
	sign := ""
	if found[1] == "-" {
		sign = "-"
	}
	switch {
	case kept == "":
		return "0"
	case exponent >= 0:
		return sign + kept + strings.Repeat("0", exponent)
	case point > 0:
		return sign + kept[:point] + "." + kept[point:]
	}
	return sign + "0." + strings.Repeat("0", -point) + kept
}

var numbered = regexp.MustCompile(`^(-?[0-9]{1,20})\.([0-9]{6})709551([0-9]{1,4})$`)

// The logical key 12.5 in shard 3 is 12.5000007095510003.
func shardOfNumber(physical string) Key {
	found := numbered.FindStringSubmatch(physical)
	if found == nil {
		return Key{Value: physical}
	}
	logical := strings.TrimSuffix(found[1]+"."+strings.TrimRight(found[2], "0"), ".")
	shard := number((found[3] + "000")[:4])
	if shard == 0 || logical == "-0" {
		return Key{Value: physical}
	}
	return Key{Value: logical, Shard: shard}
}

func byTemplates(physical string, kind byte, rules []Rule) Key {
	for at, rule := range rules {
		read := byTemplate(physical, rule)
		if read == nil {
			continue
		}
		for other, its := range rules {
			if its.Keys == nil || its.Keys(named(read.Value, kind)) {
				if other == at {
					return *read
				}
				break
			}
		}
	}
	return Key{Value: physical}
}

var pieces = regexp.MustCompile(`\{(pk|shard|bucket)(?:\+([0-9]+))?(?::([^}]*))?\}`)

func byTemplate(physical string, rule Rule) *Key {
	if rule.Template == "" {
		return nil
	}
	source, end, start, width := "", 0, 0, 1
	for _, at := range pieces.FindAllStringSubmatchIndex(rule.Template, -1) {
		group := func(number int) string {
			if at[2*number] < 0 {
				return ""
			}
			return rule.Template[at[2*number]:at[2*number+1]]
		}
		source += regexp.QuoteMeta(rule.Template[end:at[0]])
		end = at[1]
		switch group(1) {
		case "pk":
			source += `(?P<pk>.+)`
		case "shard":
			source += `(?P<shard>[0-9]{1,5})`
			start, width = number(group(2)), number(strings.TrimSuffix(group(3), "d"))
		default:
			format := group(3)
			if format == "" {
				format = formats[rule.Bucket]
			}
			source += pattern(format)
		}
	}
	found := groups(regexp.MustCompile(`(?s)^`+source+regexp.QuoteMeta(rule.Template[end:])+`$`), physical)
	if found == nil {
		return nil
	}
	key := Key{Value: found["pk"]}
	if digits := found["shard"]; digits != "" {
		key.Shard = number(digits) - start
		if digits != fmt.Sprintf("%0*d", width, key.Shard+start) {
			return nil
		}
	}
	if found["Y"] != "" || found["G"] != "" {
		if key.Bucket = calendar(found); key.Bucket == "" {
			return nil
		}
	}
	if key.Shard < 0 || key.Shard >= rule.Shards {
		return nil
	}
	return &key
}
