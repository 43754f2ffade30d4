package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"sort"
	"strings"
	"testing"
	"time"
)

// matcher stands for a value that is not known beforehand.
type matcher struct {
	name    string
	matches func(any) bool
}

func matchText(name, pattern string) matcher {
	compiled := regexp.MustCompile(pattern)
	return matcher{name, func(value any) bool {
		text, ok := value.(string)
		return ok && compiled.MatchString(text)
	}}
}

var (
	anID           = matchText("a lower-case UUID", `^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	anAPIKey       = matchText("an API key", `^rmk_[0-9A-Za-z]{71}$`)
	aSecret        = matchText("an agent secret", `^rms_[0-9A-Za-z]{49}$`)
	aRefreshToken  = matchText("a refresh token", `^rmr_[0-9A-Za-z_-]{96}$`)
	anAccessToken  = matchText("an access token", `^[0-9A-Za-z_-]+\.[0-9A-Za-z_-]+\.[0-9A-Za-z_-]+$`)
	someText       = matchText("text", `.`)
	timestampShape = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
)

// aboutNow is a timestamp of this minute, aboutIn one as far ahead.
var aboutNow = aboutIn(0)

func aboutIn(ahead time.Duration) matcher {
	return matcher{fmt.Sprintf("a timestamp in about %s", ahead), func(value any) bool {
		text, _ := value.(string)
		at, err := time.Parse(time.RFC3339, text)
		return err == nil && timestampShape.MatchString(text) && time.Until(at.Add(-ahead)).Abs() < time.Minute
	}}
}

// num is a number as answers are decoded: by its digits.
func num(digits any) json.Number { return json.Number(fmt.Sprint(digits)) }

// list is an array of strings as answers are decoded.
func list(items ...string) []any {
	array := []any{}
	for _, item := range items {
		array = append(array, item)
	}
	return array
}

// differences says in what an object is not exactly what is wanted; "" when it is. Numbers are equal by their digits.
func differences(got, want fields) string {
	var found []string
	for name, value := range got {
		wanted, known := want[name]
		switch m, isMatcher := wanted.(matcher); {
		case !known:
			found = append(found, fmt.Sprintf("%s = %#v is too much", name, value))
		case isMatcher && !m.matches(value):
			found = append(found, fmt.Sprintf("%s = %#v is not %s", name, value, m.name))
		case !isMatcher && !reflect.DeepEqual(value, plain(wanted)):
			found = append(found, fmt.Sprintf("%s = %#v, want %#v", name, value, wanted))
		}
	}
	for name := range want {
		if _, present := got[name]; !present {
			found = append(found, name+" is missing")
		}
	}
	sort.Strings(found)
	return strings.Join(found, "; ")
}

// wantFields fails the test unless an object is exactly what is wanted; see differences.
func wantFields(t *testing.T, what string, got, want fields) {
	t.Helper()
	if found := differences(got, want); found != "" {
		t.Errorf("%s: %s", what, found)
	}
}

// plain returns a wanted value as it is decoded.
func plain(wanted any) any {
	switch wanted := wanted.(type) {
	case fields:
		return map[string]any(wanted)
	case int:
		return num(wanted)
	default:
		return wanted
	}
}

// with returns the fields with others added or replaced.
func (f fields) with(more fields) fields {
	all := fields{}
	maps.Copy(all, f)
	maps.Copy(all, more)
	return all
}

// without returns the fields except some.
func (f fields) without(names ...string) fields {
	rest := f.with(nil)
	for _, name := range names {
		delete(rest, name)
	}
	return rest
}
