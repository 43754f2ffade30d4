// Package gateway is the metering gateway: it stands before the providers of language models, in place of their address, and bounds what
// an agent spends there. A client sets its base URL to http://HOST/NAME and its API key to a session key or an access token.
//
// Before a call it holds the most that the call can cost, as the caller; then it sends the call once, with the provider's key; and it
// settles by what the answer says, before the last of the answer is passed on. What is in doubt is spent.
//
// It has no state: the hold stands in Redis, and is spent when a gateway ends without settling it. The API's handlers, inside this
// process, decide who calls and what fits (package server); package client/wire knows the providers' formats.
package gateway
