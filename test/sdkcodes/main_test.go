package main

import (
	"go/format"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"remit/openapi"
)

func TestTheSDKsHaveTheListsOfTheDescription(t *testing.T) {
	t.Parallel()
	described, err := listsOf(openapi.JSON().Body)
	if err != nil {
		t.Fatal(err)
	}
	for file, source := range sources {
		committed, err := os.ReadFile(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		if string(committed) != source(described) {
			t.Errorf("%s does not match openapi/openapi.json: run go generate ./test/sdkcodes", file)
		}
	}
}

func TestANewCodeOrEventTypeChangesEverySDK(t *testing.T) {
	t.Parallel()
	described, err := listsOf([]byte(`{"components":{"schemas":{"Problem":{"properties":{"code":{"enum":["not_found","bad_api_key"]}}},` +
		`"EventType":{"enum":["agent.created","session.more_requested","events.lost"]}}}}`))
	if err != nil || !slices.Equal(described.codes, []string{"not_found", "bad_api_key"}) || len(described.eventTypes) != 3 {
		t.Fatalf("%q, %v", described, err)
	}
	for file, want := range map[string]string{
		"client/codes.go":               "\tcodeNotFound  = \"not_found\"\n\tcodeBadAPIKey = \"bad_api_key\"\n",
		"sdk/typescript/src/codes.ts":   "  notFound: \"not_found\",\n  badApiKey: \"bad_api_key\",\n",
		"sdk/python/src/remit/codes.py": "NOT_FOUND: Final = \"not_found\"\nBAD_API_KEY: Final = \"bad_api_key\"\n",
		"client/eventtypes.go": "\tEventAgentCreated         EventType = \"agent.created\"\n" +
			"\tEventSessionMoreRequested EventType = \"session.more_requested\"\n\tEventsLost                EventType = \"events.lost\"\n",
		"sdk/typescript/src/eventtypes.ts":   "  | \"agent.created\"\n  | \"session.more_requested\"\n  | \"events.lost\"\n  | (string & {});\n",
		"sdk/python/src/remit/eventtypes.py": "    SESSION_MORE_REQUESTED: Final = \"session.more_requested\"\n    EVENTS_LOST: Final = \"events.lost\"\n",
	} {
		got := sources[file](described)
		if !strings.Contains(got, want) || !strings.Contains(strings.SplitN(got, "\n", 2)[0], "DO NOT EDIT.") {
			t.Errorf("%s:\n%s", file, got)
		}
	}
	for _, source := range []string{goSource(described.codes), goEventTypes(described.eventTypes)} {
		if formatted, err := format.Source([]byte(source)); err != nil || string(formatted) != source {
			t.Errorf("gofmt changes the Go file (%v):\n%s", err, formatted)
		}
	}
}

func TestADescriptionWithoutAListIsAnError(t *testing.T) {
	t.Parallel()
	for _, description := range []string{
		`{}`, `{"components":`, `{"components":{"schemas":{"EventType":{"enum":["agent.created"]}}}}`,
		`{"components":{"schemas":{"Problem":{"properties":{"code":{"enum":["not_found"]}}}}}}`,
	} {
		if found, err := listsOf([]byte(description)); err == nil {
			t.Errorf("%s: %q", description, found)
		}
	}
}
