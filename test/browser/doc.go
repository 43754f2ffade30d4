// Package browser tests the console in a real browser: Debian's Chromium, driven by Playwright, checked by axe-core.
//
// The Go test starts a service with a redis-server of its own, and runs the *.test.mjs files beside it with node. Each file
// creates its own organization by the API. visitor.mjs opens pages, and fails a test whose page sends a request to another
// origin, violates its content security policy, or logs an error. The scripts find everything by role and name, as people do.
//
// Screenshots of every page go to the directory that REMIT_SCREENSHOTS names. With -update the picture of the README is taken anew.
package browser
