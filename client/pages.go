package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// Elements of a page: as many as fit into maxResponse when each has its maximum length.
const (
	agentsPerPage = "40" // because agents include their metadata
	perPage       = "100"
)

// list yields the elements of a list, newest first, and requests each page when it is needed. After an error it yields
// nothing more. The parameters are those of withQuery.
func list[T any](ctx context.Context, c *caller, path, limit string, parameters ...string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for cursor, more := "", true; more; {
			var page []T
			q := call{method: http.MethodGet, path: withQuery(path, append(parameters, "limit", limit, "cursor", cursor)...)}
			header, err := c.doWithHeader(ctx, q, &page)
			if err != nil {
				yield(*new(T), err)
				return
			}
			for _, element := range page {
				if !yield(element, nil) {
					return
				}
			}
			last := cursor
			if cursor, more = nextPage(header, "cursor"); more && cursor == last {
				yield(*new(T), fmt.Errorf("remit: GET %s: %w", path, &unreadable{errors.New("the next page is the same page")}))
				return
			}
		}
	}
}

// link matches one link of a Link header: its target and its parameters. A quoted parameter may hold any character.
var link = regexp.MustCompile(`<([^<>]*)>((?:[^<"]|"[^"]*")*)`)

// nextPage returns a parameter of `Link: <…>; rel="next"`. Proxies may add other links, in the same line or in others. The
// link itself is not followed, because credentials must go to the base URL only.
func nextPage(header http.Header, parameter string) (value string, more bool) {
	for _, found := range link.FindAllStringSubmatch(strings.Join(header.Values("Link"), ", "), -1) {
		if !strings.Contains(found[2], `rel="next"`) {
			continue
		}
		if u, err := url.Parse(found[1]); err == nil {
			value = u.Query().Get(parameter)
		}
		break
	}
	return value, value != ""
}
