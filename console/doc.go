// Package console is the web pages at /console: what runs, what it spends, and the switch to stop it.
//
// It is a client of the API inside the process. Every page signs its viewer's requests with the API key from a sealed cookie and
// sends them through pages.Host.Call, so roles, quotas, queues and rate limits hold as for any client, and nothing here reads the
// store.
//
//	pages.go     the only table of pages: method, path, role, handler
//	visit.go     one request of a signed-in viewer, and what handlers answer with
//	signin.go    sign-in and sign-out; cookie.go seals what the browser keeps
//	guard.go     what every request must satisfy, and the headers of every response
//	change.go    changes that are one call of the API
//	api.go       calls of the API, decoded into the types of package client
//	render.go    templates/*.html; format.go how values read
//	live.go      live updates of what a page shows
//
// A page is a handler in the file of its resource, its rows in pages.go, and templates/NAME.html. Handlers return errors; only
// visit.go turns them into pages.
package console
