package console

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/goccy/go-json"
	"github.com/valyala/fasthttp"
	"remit/server/pages"
)

// api calls the API for one request of a viewer.
type api struct {
	host *pages.Host
	ctx  *fasthttp.RequestCtx
	key  string
	id   string // of the request that it goes on for without that; "" for none
	cost *cost  // to which calls are added; nil if it does not matter
}

// alone returns calls that go on when the viewer has left.
func (a api) alone() api {
	a.id = string(a.ctx.Response.Header.Peek("X-Request-Id"))
	a.ctx, a.cost = nil, nil
	return a
}

// get reads an object or a list.
func (a api) get(path string, into any) error {
	_, err := a.list(path, into)
	return err
}

// list reads a page of a list, and returns the cursor of the next one, "" for none.
func (a api) list(path string, into any) (next string, err error) {
	err = a.call(pages.Call{Method: fasthttp.MethodGet, Path: path}, into, func(r pages.Reply) { next = nextPage(r.Link, "cursor") })
	return next, err
}

// feedPage is how many events one read returns at most.
const feedPage = 200

// feed reads a page of the organization's events, and returns the number after which to go on.
func (a api) feed(after int64, parameters ...string) (events []eventRow, next int64, err error) {
	path := query("/v1/events", append(parameters, "after", strconv.FormatInt(after, 10), "limit", strconv.Itoa(feedPage))...)
	err = a.call(pages.Call{Method: fasthttp.MethodGet, Path: path}, &events, func(r pages.Reply) {
		next, _ = strconv.ParseInt(nextPage(r.Link, "after"), 10, 64) // 0 for no next page
	})
	return events, next, err
}

// change sends a change. With once, the text that a form carries, sending the form again changes nothing again.
func (a api) change(method, path, once string, body map[string]any, into any) error {
	c := pages.Call{Method: method, Path: path, IdempotencyKey: once}
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		c.Body = text
	}
	return a.call(c, into, nil)
}

func (a api) call(c pages.Call, into any, also func(pages.Reply)) error {
	c.APIKey, c.RequestID = a.key, a.id
	return a.host.Call(a.ctx, c, func(r pages.Reply) error {
		a.cost.add(len(r.Body))
		if also != nil {
			also(r)
		}
		return decodeReply(r, into)
	})
}

// decodeReply returns the error of a reply that is a problem.
func decodeReply(r pages.Reply, into any) error {
	if r.Status >= fasthttp.StatusBadRequest {
		p := &problem{Status: r.Status}
		_ = json.Unmarshal(r.Body, p) // a reply without a code has its status
		p.retryAfter = r.RetryAfter
		return p
	}
	if into == nil || len(r.Body) == 0 {
		return nil
	}
	return json.Unmarshal(r.Body, into)
}

// nextPage reads a parameter of the link that announces the next page of a list, "" for none.
func nextPage(link, parameter string) string {
	target, _, found := strings.Cut(strings.TrimPrefix(link, "<"), ">")
	if !found {
		return ""
	}
	u, err := url.Parse(target)
	if err != nil {
		return ""
	}
	return u.Query().Get(parameter)
}

// query returns a path with the parameters that are not empty. They are name, value, name, value, …
func query(path string, parameters ...string) string {
	values := url.Values{}
	for i := 0; i < len(parameters); i += 2 {
		if parameters[i+1] != "" {
			values.Set(parameters[i], parameters[i+1])
		}
	}
	if len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}
