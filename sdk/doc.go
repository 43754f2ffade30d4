// Package sdk holds the TypeScript and Python SDKs, and tests each against a running service.
package sdk
