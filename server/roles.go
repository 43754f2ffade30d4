package server

import "remit/redisstore"

// noKey stands at an operation that no API key opens. If such an operation came to take a key, only an admin's would open it.
const noKey redisstore.Role = ""

// roles is the only table of the least role with which an API key opens each operation, by method and route. GET includes HEAD.
// A viewer reads whatever contains no credential, an operator also runs and stops, an admin also decides who and how much.
var roles = map[string]redisstore.Role{
	"GET /": noKey, "GET /docs": noKey, "GET /openapi.json": noKey,
	"GET /healthz": noKey, "GET /readyz": noKey, "GET /metrics": noKey,
	"GET /.well-known/jwks.json": noKey, "GET /.well-known/oauth-authorization-server": noKey,

	"POST /v1/organizations":                      noKey,
	"GET /v1/organizations/{id}":                  redisstore.Viewer,
	"POST /v1/organizations/{id}/api-key/rotate":  redisstore.Admin,
	"GET /v1/api-keys":                            redisstore.Viewer,
	"POST /v1/api-keys":                           redisstore.Admin,
	"POST /v1/api-keys/{id}/rotate":               redisstore.Admin,
	"DELETE /v1/api-keys/{id}":                    redisstore.Admin,
	"GET /v1/budget":                              redisstore.Viewer,
	"PUT /v1/budget":                              redisstore.Admin,
	"DELETE /v1/budget":                           redisstore.Admin,
	"GET /v1/agents":                              redisstore.Viewer,
	"POST /v1/agents":                             redisstore.Admin,
	"POST /v1/agents/suspend":                     redisstore.Operator,
	"POST /v1/agents/resume":                      redisstore.Operator,
	"GET /v1/agents/{id}":                         redisstore.Viewer,
	"PATCH /v1/agents/{id}":                       redisstore.Admin,
	"DELETE /v1/agents/{id}":                      redisstore.Admin,
	"POST /v1/agents/{id}/suspend":                redisstore.Operator,
	"POST /v1/agents/{id}/resume":                 redisstore.Operator,
	"POST /v1/agents/{id}/revoke":                 redisstore.Operator,
	"POST /v1/agents/{id}/secret/rotate":          redisstore.Admin,
	"GET /v1/agents/{id}/events":                  redisstore.Viewer,
	"GET /v1/agents/{id}/families":                redisstore.Viewer,
	"DELETE /v1/agents/{id}/families/{family_id}": redisstore.Operator,

	"GET /v1/usage":                                         redisstore.Viewer,
	"GET /v1/events":                                        redisstore.Viewer,
	"GET /v1/events/checkpoint":                             redisstore.Viewer,
	"GET /v1/webhooks":                                      redisstore.Viewer,
	"POST /v1/webhooks":                                     redisstore.Admin,
	"GET /v1/webhooks/{id}":                                 redisstore.Viewer,
	"PATCH /v1/webhooks/{id}":                               redisstore.Admin,
	"DELETE /v1/webhooks/{id}":                              redisstore.Admin,
	"POST /v1/webhooks/{id}/rotate":                         redisstore.Admin,
	"POST /v1/webhooks/{id}/test":                           redisstore.Admin,
	"GET /v1/webhooks/{id}/deliveries":                      redisstore.Viewer,
	"POST /v1/webhooks/{id}/deliveries/{delivery_id}/retry": redisstore.Admin,

	"POST /v1/auth/token": noKey, "POST /v1/auth/refresh": noKey, "POST /v1/auth/revoke": noKey,
	"POST /v1/auth/introspect": redisstore.Viewer,
	"GET /v1/auth/verify":      noKey,
	"POST /oauth2/token":       noKey, "GET /oauth2/authorize": noKey, "POST /oauth2/revoke": noKey, "POST /oauth2/introspect": noKey,

	"GET /v1/sessions":                                     redisstore.Viewer,
	"POST /v1/sessions":                                    redisstore.Operator,
	"GET /v1/sessions/{id}":                                redisstore.Viewer,
	"PATCH /v1/sessions/{id}":                              redisstore.Operator,
	"POST /v1/sessions/{id}/end":                           redisstore.Operator,
	"POST /v1/sessions/{id}/suspend":                       redisstore.Operator,
	"POST /v1/sessions/{id}/resume":                        redisstore.Operator,
	"GET /v1/sessions/{id}/tree":                           redisstore.Viewer,
	"GET /v1/sessions/{id}/usage":                          redisstore.Viewer,
	"POST /v1/sessions/{id}/actions":                       redisstore.Operator,
	"POST /v1/actions":                                     redisstore.Operator,
	"POST /v1/sessions/{id}/leases":                        redisstore.Operator,
	"GET /v1/leases/{id}":                                  redisstore.Viewer,
	"POST /v1/leases/{id}/settle":                          redisstore.Operator,
	"GET /v1/sessions/{id}/requests":                       redisstore.Viewer,
	"POST /v1/sessions/{id}/requests":                      noKey,
	"GET /v1/sessions/{id}/requests/{request_id}":          redisstore.Viewer,
	"POST /v1/sessions/{id}/requests/{request_id}/approve": redisstore.Operator,
	"POST /v1/sessions/{id}/requests/{request_id}/deny":    redisstore.Operator,

	"GET /v1/transactions":                redisstore.Viewer,
	"POST /v1/transactions":               noKey,
	"GET /v1/transactions/{id}":           redisstore.Viewer,
	"PATCH /v1/transactions/{id}":         noKey,
	"POST /v1/transactions/{id}/commit":   noKey,
	"POST /v1/transactions/{id}/rollback": redisstore.Operator,
}
