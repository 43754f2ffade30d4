package interop

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"remit/test/tool"
)

// verifiers are programs around the examples of docs/sdks.md that verify a webhook. Each prints whether the request in NOTIFIED is verified.
var verifiers = map[string]string{
	"go": `package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func main() {
	var notified struct {
		Secrets []string
		Headers map[string]string
		Body    string
	}
	if err := json.Unmarshal([]byte(os.Getenv("NOTIFIED")), &notified); err != nil {
		panic(err)
	}
	secret, body, request := notified.Secrets[0], []byte(notified.Body), http.Request{Header: http.Header{}}
	for name, value := range notified.Headers {
		request.Header.Set(name, value)
	}
	EXAMPLE
	fmt.Println("verified:", err == nil)
}
`,
	"js": `const { secrets: [secret], headers, body } = JSON.parse(process.env.NOTIFIED);
const request = { headers };
process.on("uncaughtException", () => console.log("verified: false"));
EXAMPLE
console.log("verified:", type === data.type);
`,
	"python": `import json, os, types
received = json.loads(os.environ["NOTIFIED"])
secret, body = received["secrets"][0], received["body"].encode()
request = types.SimpleNamespace(headers=received["headers"])
try:
    exec(os.environ["EXAMPLE"])
    print("verified:", "true" if event["type"] == event["data"]["type"] else "false")
except ValueError:
    print("verified: false")
`,
}

// verify runs an example with a request, and returns what it prints.
func verify(t *testing.T, language, example string, request notified) string {
	t.Helper()
	text := must(json.Marshal(request))(t)
	settings, code := []string{"NOTIFIED=" + string(text), "EXAMPLE=" + example}, strings.Replace(verifiers[language], "EXAMPLE\n", example, 1)
	switch language {
	case "go":
		return runExample(t, "go", code, settings)
	case "js":
		return runNode(t, settings, code, "--input-type=module", "-")
	default:
		return runCommand(t, append(os.Environ(), settings...), verifiers[language], tool.Path(t, "python3"), "-")
	}
}

// The examples of docs/sdks.md verify what a service sends, and nothing that was changed.
func TestTheExamplesOfTheSDKsPageVerifyWebhooks(t *testing.T) {
	t.Parallel()
	page := must(os.ReadFile("../../docs/sdks.md"))(t)
	_, section, _ := strings.Cut(string(page), "\n## Verifying webhooks\n")
	section, _, _ = strings.Cut(section, "\n## ")
	examples := map[string]string{}
	for _, block := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(section, -1) {
		examples[block[1]] = block[2]
	}
	if len(examples) != len(verifiers) {
		t.Fatalf("the page has the examples %v", examples)
	}
	o, r := newOrganization(t, startService(t, "--webhook-allow-private")), newReceiver(t)
	var hook struct{ ID, Secret string }
	o.call(t, http.MethodPost, "/v1/webhooks", map[string]any{"url": r.url}, &hook)
	sent := r.await(t, "webhook.test", hook.Secret)
	changed := sent
	changed.Body = strings.Replace(sent.Body, "webhook.test", "webhook.nest", 1)
	for language := range verifiers {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			if got := verify(t, language, examples[language], sent); got != "verified: true\n" {
				t.Errorf("of what was sent it says %q", got)
			}
			if got := verify(t, language, examples[language], changed); got != "verified: false\n" {
				t.Errorf("of what was changed it says %q", got)
			}
		})
	}
}
