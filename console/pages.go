package console

import (
	"github.com/valyala/fasthttp"
	"remit/redisstore"
)

const (
	get  = fasthttp.MethodGet
	post = fasthttp.MethodPost

	agents   = Prefix + "/agents"
	agent    = agents + "/{agent}"
	sessions = Prefix + "/sessions"
	session  = sessions + "/{session}"
	request  = session + "/requests/{request}"
	webhook  = webhooks + "/{webhook}"

	sessionKeys = session + "/keys"
	sessionKey  = sessionKeys + "/{sessionkey}"

	transaction = Prefix + "/transactions/{transaction}"

	apiKey = apiKeys + "/{key}"

	viewer   = redisstore.Viewer
	operator = redisstore.Operator
	admin    = redisstore.Admin
)

// pages is the only table of pages. A change says in undone what to tell when it fails.
func (c *Console) pages() []page {
	return []page{
		{method: get, path: Prefix, role: viewer, nav: "Overview", handle: showOverview},
		{method: post, path: Prefix, open: c.beginSignIn},
		{method: post, path: signOutPath, open: c.endSignIn},

		{method: get, path: livePath, role: viewer, handle: streamUpdates, stream: true},

		{method: get, path: agents, role: viewer, nav: "Agents", handle: showAgents},
		{method: post, path: agents, role: admin, handle: createAgent.reveal, undone: "No agent was created."},
		{method: get, path: agent, role: viewer, handle: showAgent},
		{method: post, path: agent + "/suspend", role: operator, handle: suspendAgent.handle, undone: "The agent was not suspended."},
		{method: post, path: agent + "/resume", role: operator, handle: resumeAgent.handle, undone: "The agent was not resumed."},
		{method: post, path: agent + "/revoke", role: operator, handle: revokeAgent.handle, confirm: "revoke", undone: "The agent was not revoked."},
		{method: post, path: agent + "/rotate-secret", role: admin, handle: rotateSecret.reveal, confirm: "rotate", undone: "The secret was not rotated."},
		{method: post, path: agent + "/limits", role: admin, handle: limitAgent, undone: "The limits were not changed."},
		{method: post, path: agent + "/families/{family}/revoke", role: operator, handle: revokeFamily, undone: "The token family was not revoked."},

		{method: get, path: sessions, role: viewer, nav: "Sessions", handle: showSessions},
		{method: post, path: sessions, role: operator, handle: createSession.handle, undone: "No session was created."},
		{method: get, path: session, role: viewer, handle: showSession},
		{method: post, path: session + "/suspend", role: operator, handle: suspendSession.handle, undone: "The session was not suspended."},
		{method: post, path: session + "/resume", role: operator, handle: resumeSession.handle, undone: "The session was not resumed."},
		{method: post, path: session + "/top-up", role: operator, handle: topUpSession, undone: "The limits were not raised."},
		{method: post, path: session + "/end", role: operator, handle: endSession.handle, confirm: "end", undone: "The session was not ended."},
		{method: post, path: request + "/approve", role: operator, handle: approveRequest.handle, undone: "The request was not approved."},
		{method: post, path: request + "/deny", role: operator, handle: denyRequest.handle, undone: "The request was not denied."},
		{method: post, path: sessionKeys, role: operator, handle: createSessionKey, undone: "No session key was created."},
		{method: post, path: sessionKey + "/delete", role: operator, handle: deleteSessionKey.handle, confirm: "delete", undone: "The session key was not deleted."},
		{method: get, path: transaction, role: viewer, handle: showTransaction},
		{method: post, path: transaction + "/roll-back", role: operator, handle: rollBack, confirm: "roll back", undone: "The transaction was not rolled back."},

		{method: get, path: requestsPath, role: viewer, nav: "Requests", handle: showRequests},

		{method: get, path: usagePath, role: viewer, nav: "Usage", handle: showUsage},
		{method: get, path: usagePath + "/export", role: viewer, handle: exportUsage, raw: true},

		{method: get, path: budget, role: viewer, nav: "Budget", handle: showBudget},
		{method: post, path: budget, role: admin, handle: setBudget.handle, undone: "The budget was not set."},
		{method: post, path: budget + "/remove", role: admin, handle: removeBudget.handle, confirm: "remove", undone: "The budget was not removed."},

		{method: get, path: eventsPath, role: viewer, nav: "Events", handle: showEvents},

		{method: get, path: webhooks, role: viewer, nav: "Webhooks", handle: showWebhooks},
		{method: post, path: webhooks, role: admin, handle: createWebhook.reveal, undone: "No webhook was created."},
		{method: get, path: webhook, role: viewer, handle: showWebhook},
		{method: post, path: webhook + "/test", role: admin, handle: testWebhook.handle, undone: "No test was sent."},
		{method: post, path: webhook + "/change", role: admin, handle: changeWebhook.handle, undone: "The webhook was not changed."},
		{method: post, path: webhook + "/rotate", role: admin, handle: rotateWebhook.reveal, confirm: "rotate", undone: "The secret was not rotated."},
		{method: post, path: webhook + "/delete", role: admin, handle: deleteWebhook.handle, confirm: "delete", undone: "The webhook was not deleted."},
		{method: post, path: webhook + "/deliveries/{delivery}/retry", role: admin, handle: retryDelivery.handle, undone: "The event was not sent again."},

		{method: get, path: apiKeys, role: viewer, nav: "API keys", handle: showAPIKeys},
		{method: post, path: apiKeys, role: admin, handle: createAPIKey, undone: "No API key was created."},
		{method: post, path: apiKey + "/rotate", role: admin, replays: true, handle: rotateAPIKey, confirm: "rotate", undone: "The API key was not replaced."},
		{method: post, path: apiKey + "/delete", role: admin, handle: deleteAPIKey.handle, confirm: "delete", undone: "The API key was not deleted."},

		{method: get, path: stopPath, role: viewer, nav: "Stop all", handle: showStop},
		{method: get, path: stopPath + "/progress", role: viewer, handle: showProgress, raw: true},
		{method: post, path: stopPath, role: operator, handle: stopAll, confirm: "stop", undone: "Not all agents were suspended."},
		{method: post, path: stopPath + "/resume", role: operator, handle: resumeAll, confirm: "resume", undone: "Not all agents were resumed."},
	}
}
