// Package clients runs the packages and the command-line agents that people use against the metering gateway, as they are: each gets the
// gateway's address and a session key, and nothing else of Remit.
package clients
