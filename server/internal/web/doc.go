// Package web is what every request passes, whatever resource it is about: routes, framing, memory, reading bodies, queries and
// headers, validation, answers, problems, request ids, idempotency keys, and what metrics, traces and the access log say of a
// request. decode.go is the only reader of JSON bodies.
//
// A handler writes a response or returns an error, which the adapter in routes.go writes. fasthttp reuses a request's bytes
// for the next request, so a handler copies whatever it keeps or passes on.
package web
