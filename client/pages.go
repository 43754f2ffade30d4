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

// Elements of a page: as many as fit into maxAnswer when each is as long as the service allows.
const (
	agentsPerPage = "40" // they come with their metadata
	perPage       = "100"
)

// list yields the elements of a list, newest first, and asks for a page when the one before is used up. An error is
// the last that it yields. The parameters are as withQuery takes them.
func list[T any](ctx context.Context, c *caller, path, limit string, parameters ...string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for cursor, more := "", true; more; {
			var page []T
			q := call{method: http.MethodGet, path: withQuery(path, append(parameters, "limit", limit, "cursor", cursor)...)}
			header, err := c.doWithHeader(ctx, q, &page)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, element := range page {
				if !yield(element, nil) {
					return
				}
			}
			last := cursor
			if cursor, more = nextCursor(header); more && cursor == last {
				var none T
				yield(none, fmt.Errorf("remit: GET %s: %w", path, &unreadable{errors.New("the next page is the same page")}))
				return
			}
		}
	}
}

// link is one of a Link header: its target, and its parameters, of which those in quotes may hold anything.
var link = regexp.MustCompile(`<([^<>]*)>((?:[^<"]|"[^"]*")*)`)

// nextCursor takes the cursor out of `Link: <…>; rel="next"`, beside which proxies may put links of their own, in the
// same line or in others. The link itself is not followed: a credential goes only to the base URL.
func nextCursor(header http.Header) (cursor string, more bool) {
	for _, found := range link.FindAllStringSubmatch(strings.Join(header.Values("Link"), ", "), -1) {
		if !strings.Contains(found[2], `rel="next"`) {
			continue
		}
		if u, err := url.Parse(found[1]); err == nil {
			cursor = u.Query().Get("cursor")
		}
		break
	}
	return cursor, cursor != ""
}
