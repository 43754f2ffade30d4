//go:build long

package browser

import (
	"testing"

	"remit/test/serviceproc"
)

// Each script has a service of its own, so that none meets the limits that another has used up.
func TestScripts(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"people sign in and out":                       "signin.test.mjs",
		"a role decides what is shown and possible":    "roles.test.mjs",
		"texts of strangers are only text":             "hostile.test.mjs",
		"pages are live while a viewer sees them":      "live.test.mjs",
		"every page is accessible, and fits any width": "pages.test.mjs",
		"what is shown once is copied":                 "copy.test.mjs",
		"all requests are decided, and usage exported": "lists.test.mjs",
		"errors, messages and what is empty, too":      "states.test.mjs",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runScript(t, serviceproc.Run(t), script)
		})
	}
}
