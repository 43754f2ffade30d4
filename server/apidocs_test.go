package server_test

import (
	"testing"

	"remit/openapi"
)

func TestTheDescriptionIsServedAndNotSentTwice(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	for _, tc := range []struct {
		path, mediaType string
		want            openapi.Document
	}{
		{"/openapi.json", "application/json", openapi.JSON()},
		{"/docs", "text/html; charset=utf-8", openapi.Page()},
	} {
		r := api.get(tc.path).is(200)
		if string(r.body) != string(tc.want.Body) || r.header.Get("Content-Type") != tc.mediaType {
			t.Errorf("%s: %d bytes of %s, want %d", tc.path, len(r.body), r.header.Get("Content-Type"), len(tc.want.Body))
		}
		tag := r.header.Get("ETag")
		for _, known := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
			if again := api.get(tc.path, header("If-None-Match", known)).is(304); len(again.body) > 0 || again.header.Get("ETag") != tag {
				t.Errorf("%s again: %q %v", tc.path, again.body, again.header)
			}
		}
		api.get(tc.path, header("If-None-Match", `"other"`)).is(200)
		if head := api.ask("HEAD", tc.path, nil).is(200); len(head.body) > 0 || head.header.Get("ETag") != tag {
			t.Errorf("HEAD %s: %v", tc.path, head.header)
		}
	}
	if root := api.get("/").is(302); root.header.Get("Location") != "/docs" || len(root.body) > 0 {
		t.Errorf("/ leads to %q", root.header.Get("Location"))
	}
	if policy := api.get("/docs").header.Get("Content-Security-Policy"); policy != openapi.Page().Policy || policy == "" {
		t.Errorf("the page's policy is %q", policy)
	}
}
