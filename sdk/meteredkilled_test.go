package sdk

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"remit/client"
	"remit/client/metered"
	"remit/client/prices"
	"remit/money"
	"remit/test/serviceproc"
)

// callerVariable has the test binary make metered calls until it is killed: service, agent, secret, session, provider, and the
// seconds of a hold.
const callerVariable = "REMIT_TEST_METERED_CALLER"

func callUntilKilled() {
	said := strings.Fields(os.Getenv(callerVariable))
	remit, err := client.New(said[0], client.Options{})
	if err != nil {
		panic(err)
	}
	table, err := prices.ReadFile("testdata/prices/table.json")
	if err != nil {
		panic(err)
	}
	expiry, err := strconv.Atoi(said[5])
	if err != nil {
		panic(err)
	}
	m := &meter{url: said[4], http: &http.Client{Transport: &metered.Transport{
		Session: remit.Agent(said[1], said[2]).Session(said[3]), Prices: table, Expiry: time.Duration(expiry) * time.Second,
	}}}
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := 0; ; i++ {
				r := m.request(context.Background(), providerPaths[i%3], "pace=2,seed="+strconv.Itoa(1000*worker+i), streamedCall)
				if answer, err := m.http.Do(r); err == nil {
					io.Copy(io.Discard, answer.Body)
					answer.Body.Close()
				}
			}
		})
	}
	group.Wait()
}

// killCallers kills processes in the midst of metered calls and returns once their holds have expired: none is left.
func killCallers(t *testing.T, rounds int) {
	t.Helper()
	service := serviceproc.Run(t)
	m := newMeter(t, service.URL, money.USD, nil)
	const expiry = 3 // seconds
	for range rounds {
		before := len(m.provider.Ledger())
		p, err := serviceproc.StartProcess(exec.Command(os.Args[0]), callerVariable+"="+strings.Join([]string{
			service.URL, m.agent.ID(), m.secret, m.session.ID(), m.url, strconv.Itoa(expiry)}, " "))
		noError(t, err)
		noError(t, p.Await(func() bool { return len(m.provider.Ledger()) >= before+10 }))
		p.Kill()
	}
	m.requestWithoutBody(t) // as a process sends that is killed at that moment
	transactions, info := atRest(t, m.session, m.agent.Transactions)
	m.server.Close() // the provider has counted all calls then
	var cost, used money.MicroUSD
	for _, record := range m.provider.Ledger() {
		if record.Status == http.StatusOK { // nothing was generated for a call whose body did not come
			cost += m.cost(t, record)
		}
	}
	spent := 0
	var settled money.MicroUSD
	for _, tx := range transactions {
		switch {
		case tx.Status != "committed":
			t.Errorf("%+v", tx)
		case tx.SettledBy == "expiry":
			spent++
		default:
			settled += tx.Value
		}
		used += tx.Value
	}
	if spent == 0 || settled == 0 || used != info.ValueUsed || settled > cost || used < cost {
		t.Errorf("%d holds were spent; %s of %s settled, %s used: %+v", spent, settled, cost, used, info)
	}
}

// requestWithoutBody sends the provider the headers of a call, and hangs up.
func (m *meter) requestWithoutBody(t *testing.T) {
	t.Helper()
	before := len(m.provider.Ledger())
	connection := must(net.Dial("tcp", strings.TrimPrefix(m.url, "http://")))(t)
	io.WriteString(connection, "POST "+providerPaths[0]+" HTTP/1.1\r\nHost: provider\r\nContent-Length: 100\r\n\r\n")
	connection.Close()
	await(t, "the provider counts a call whose body does not come", func() bool { return len(m.provider.Ledger()) > before })
}

// A process that is killed leaves holds, which are spent when they expire: its calls may have been answered.
func TestTheHoldsOfAKilledProcessExpire(t *testing.T) {
	t.Parallel()
	killCallers(t, 1)
}
