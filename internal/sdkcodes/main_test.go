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

func TestTheSDKsHaveTheErrorCodesOfTheDescription(t *testing.T) {
	t.Parallel()
	codes, err := codesOf(openapi.JSON().Body)
	if err != nil {
		t.Fatal(err)
	}
	for file, source := range sources {
		committed, err := os.ReadFile(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		if string(committed) != source(codes) {
			t.Errorf("%s does not match openapi/openapi.json: run go generate ./internal/sdkcodes", file)
		}
	}
}

func TestANewCodeChangesEverySDK(t *testing.T) {
	t.Parallel()
	codes, err := codesOf([]byte(`{"components":{"schemas":{"Problem":{"properties":{"code":{"enum":["not_found","bad_api_key"]}}}}}}`))
	if err != nil || !slices.Equal(codes, []string{"not_found", "bad_api_key"}) {
		t.Fatalf("%q, %v", codes, err)
	}
	for file, want := range map[string]string{
		"client/codes.go":               "\tcodeNotFound  = \"not_found\"\n\tcodeBadAPIKey = \"bad_api_key\"\n",
		"sdk/typescript/src/codes.ts":   "  notFound: \"not_found\",\n  badApiKey: \"bad_api_key\",\n",
		"sdk/python/src/remit/codes.py": "NOT_FOUND: Final = \"not_found\"\nBAD_API_KEY: Final = \"bad_api_key\"\n",
	} {
		got := sources[file](codes)
		if !strings.Contains(got, want) || !strings.Contains(strings.SplitN(got, "\n", 2)[0], "DO NOT EDIT.") {
			t.Errorf("%s:\n%s", file, got)
		}
	}
	source := goSource(codes)
	if formatted, err := format.Source([]byte(source)); err != nil || string(formatted) != source {
		t.Errorf("gofmt changes the Go file (%v):\n%s", err, formatted)
	}
}

func TestADescriptionWithoutCodesIsAnError(t *testing.T) {
	t.Parallel()
	for _, description := range []string{`{}`, `{"components":`} {
		if codes, err := codesOf([]byte(description)); err == nil {
			t.Errorf("%s: %q", description, codes)
		}
	}
}
