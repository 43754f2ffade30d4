// Package sdk holds the SDKs of other languages, each tested against the service itself.
package sdk
