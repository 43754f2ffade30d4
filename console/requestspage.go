package console

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"remit/client"
)

const (
	requestsPath    = Prefix + "/requests"
	requestsPerPage = 25
)

// requestsPage is the organization's requests for more.
type requestsPage struct {
	paging

	Status, AgentID string
	Statuses        []string
	Shown           []requestRow
	Reading         bool // the events that are kept are still being read
	Full            bool // there may be more that wait
}

// requestRow is a request for more in a list.
type requestRow struct {
	client.MoreRequest

	AgentName string
}

var requestStatuses = []string{statusPending, statusApproved, statusDenied, statusLapsed}

// showRequests shows the requests of which events tell. What the page says of each is what the service says now.
func showRequests(v *visit) error {
	seen := v.seen()
	page := requestsPage{Status: v.queryParam("status"), AgentID: strings.TrimSpace(v.queryParam("agent")), Statuses: requestStatuses}
	if !slices.Contains(requestStatuses, page.Status) {
		page.Status = ""
	}
	agent, err := uuid.Parse(page.AgentID)
	if page.AgentID != "" && err != nil {
		return invalid("must be a UUID, as on the agent’s page").at("agent")
	}
	f, err := v.console.follow(v)
	if err != nil {
		return err
	}
	f.mu.Lock()
	found := f.stats.requests(page.Status, agent)
	page.Reading, page.Full = !f.caught, len(f.stats.pending) >= mostPending
	f.mu.Unlock()
	number := numberOf(v.queryParam("page"))
	from := min(number*requestsPerPage, len(found))
	page.paging = pagedBy(number, requestsPerPage, len(found), func(n int) string {
		return query(requestsPath, "status", page.Status, "agent", page.AgentID, "page", strconv.Itoa(n))
	})
	if err := page.read(v, f, found[from:min(from+requestsPerPage, len(found))]); err != nil {
		return err
	}
	v.live = liveAt(nil, "about", aboutAll, "after", seen, "reading", flagged(page.Reading))
	return v.show("requests", "Requests", page)
}

// read reads the requests of one page. One that was decided meanwhile is shown where it was, unless another status is asked for.
func (p *requestsPage) read(v *visit, f *follower, refs []askedRef) error {
	names := map[string]string{}
	for _, ref := range refs {
		row := requestRow{MoreRequest: client.MoreRequest{ID: ref.id, SessionID: ref.session, AgentID: ref.agent.String()}}
		err := v.api.get("/v1/sessions/"+ref.session+"/requests/"+ref.id, &row.MoreRequest)
		if err != nil && !isNotFound(err) {
			return err
		}
		if ref.status != statusPending { // a session keeps only the last that were decided, and not when others ended with it
			row.Status, row.DecidedAt = cmp.Or(row.Status, ref.status), cmp.Or(row.DecidedAt, ref.at)
		}
		if ref.status == statusPending && row.Status != statusPending {
			f.mu.Lock()
			f.stats.settle(ref.askedMore, row.MoreRequest, v.now)
			f.mu.Unlock()
		}
		if row.Status == "" || p.Status != "" && p.Status != row.Status {
			continue
		}
		if row.AgentName, err = v.api.agentName(names, row.AgentID); err != nil {
			return err
		}
		p.Shown = append(p.Shown, row)
	}
	return nil
}
