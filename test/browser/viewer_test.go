//go:build long

package browser

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// viewer is a browser without a screen: it keeps cookies and follows links.
type viewer struct {
	client *http.Client
	origin string
}

// newViewer signs in.
func newViewer(t *testing.T, origin, apiKey string) *viewer {
	t.Helper()
	jar := must(cookiejar.New(nil))(t)
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the overview adds up what all spent
	v := &viewer{&http.Client{Jar: jar, Timeout: time.Minute, CheckRedirect: stay}, origin}
	response := must(v.client.PostForm(origin+"/console", url.Values{"api_key": {apiKey}}))(t)
	defer response.Body.Close()
	if response.StatusCode != http.StatusSeeOther {
		t.Fatalf("sign-in: %s", response.Status)
	}
	return v
}

func (v *viewer) get(t *testing.T, path string) (page string, took time.Duration) {
	t.Helper()
	began := time.Now()
	response := must(v.client.Get(v.origin + path))(t)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v\n%s", path, response.StatusCode, err, body)
	}
	return string(body), time.Since(began)
}

var (
	links  = regexp.MustCompile(`<a [^>]*href="(/console[^"#]*)`)
	ids    = regexp.MustCompile(`/[0-9a-f-]{36}\b|/[0-9]+\b`)
	values = regexp.MustCompile(`=[^&]*`)
)

// pages returns the addresses that links lead to from the overview, one of each kind: ids differ, and values of the query.
func (v *viewer) pages(t *testing.T) []string {
	t.Helper()
	waiting, seen, found := []string{"/console"}, map[string]bool{}, []string(nil)
	for len(waiting) > 0 {
		path := waiting[0]
		waiting = waiting[1:]
		address, query, _ := strings.Cut(path, "?")
		kind := ids.ReplaceAllString(address, "/ID") + "?" + values.ReplaceAllString(query, "")
		if seen[kind] {
			continue
		}
		seen[kind] = true
		found = append(found, path)
		page, _ := v.get(t, path)
		for _, link := range links.FindAllStringSubmatch(page, -1) {
			if to := html.UnescapeString(link[1]); !strings.Contains(to, "/export?") { // a file is no page
				waiting = append(waiting, to)
			}
		}
	}
	slices.Sort(found)
	return found
}
