// Package webhook delivers an organization's events to its webhooks, in the form of Standard Webhooks
// (https://www.standardwebhooks.com). docs/decisions/0055-webhooks.md says how, and what a crash leaves.
//
// Deliverer finds organizations with news, claims them and runs a loop for each of their webhooks. A pass of a loop attempts what is due
// and what is new, and reports it to the store. Sender sends one request, to public addresses only.
package webhook
