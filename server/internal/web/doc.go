// Package web is what every request and every response needs, whatever resource it is about: reading bodies, queries and
// headers, validation, problems, request ids, idempotency keys, and what metrics, traces and the access log say of a request.
// decode.go is the only reader of JSON bodies.
package web
