// Package access finds out who calls: by API keys, access tokens, proofs of possession, delegation and assertions. It serves the
// endpoints that give, describe and revoke tokens, and the documents that clients find them by. auth.go is the only reader of
// credentials.
package access
