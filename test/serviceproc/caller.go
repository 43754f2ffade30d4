package serviceproc

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Caller calls a service and keeps the credentials of its answers by name.
type Caller struct {
	T    *testing.T
	URL  string
	Kept map[string]string
}

// Call sends a request and returns the status and the answer's members.
func (c *Caller) Call(method, path string, header map[string]string, body string) (int, map[string]any) {
	c.T.Helper()
	request, err := http.NewRequest(method, c.URL+path, strings.NewReader(body))
	if err != nil {
		c.T.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		c.T.Fatal(err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	members := map[string]any{}
	_ = json.Unmarshal(text, &members)
	return response.StatusCode, members
}

// Keep posts to an endpoint that must succeed and keeps a credential of its answer.
func (c *Caller) Keep(name, member, path string, header map[string]string, body string) map[string]any {
	c.T.Helper()
	status, answer := c.Call(http.MethodPost, path, header, body)
	if status > 299 {
		c.T.Fatalf("POST %s: %d %v", path, status, answer)
	}
	c.Kept[name] = fmt.Sprint(answer[member])
	return answer
}
