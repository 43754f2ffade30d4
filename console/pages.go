package console

import (
	"github.com/valyala/fasthttp"
	"remit/redisstore"
)

const (
	get  = fasthttp.MethodGet
	post = fasthttp.MethodPost

	viewer   = redisstore.Viewer
	operator = redisstore.Operator
	admin    = redisstore.Admin
)

// pages is the only table of pages. A change says in undone what to tell when it fails.
func (c *Console) pages() []page {
	return []page{
		{method: get, path: Prefix, role: viewer, nav: "Overview", handle: showOverview},
		{method: post, path: Prefix, open: c.beginSignIn},
		{method: post, path: Prefix + "/sign-out", role: viewer, handle: (*visit).endSignIn},
	}
}
