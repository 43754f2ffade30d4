package deploy

import (
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// egress is what the tests read of a rule.
type egress struct {
	To []struct {
		IPBlock struct {
			CIDR   netip.Prefix
			Except []netip.Prefix
		} `json:"ipBlock"`
	}
	Ports []struct{ Port any }
}

func (e egress) allows(text string) bool {
	address := netip.MustParseAddr(text)
	for _, to := range e.To {
		excepted := slices.ContainsFunc(to.IPBlock.Except, func(network netip.Prefix) bool { return network.Contains(address) })
		if to.IPBlock.CIDR.Contains(address) && !excepted {
			return true
		}
	}
	return false
}

func egressOf(t *testing.T, text string) []egress {
	t.Helper()
	var policy struct{ Spec struct{ Egress []egress } }
	noError(t, yaml.Unmarshal([]byte(text), &policy))
	return policy.Spec.Egress
}

// The networks in which the tests look: public ones, and private ones, with the metadata of a cloud.
var (
	public  = []string{"1.1.1.1", "8.8.8.8", "198.20.0.1", "2606:4700::1111", "2a00:1450::1"}
	private = []string{
		"10.1.2.3", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.168.1.1", "198.18.0.1", "224.0.0.1",
		"255.255.255.255", "0.0.0.0", "::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::", "fd00:ec2::254", "fe80::1", "ff02::1",
	}
)

func (e egress) opensHTTPS() bool {
	return len(e.Ports) == 0 || slices.ContainsFunc(e.Ports, func(port struct{ Port any }) bool { return port.Port == 443.0 })
}

func (e egress) reachesPublicAddressesAlone(t *testing.T) {
	t.Helper()
	if len(e.Ports) != 1 || e.Ports[0].Port != 443.0 {
		t.Errorf("the rule for https has the ports %v", e.Ports)
	}
	for _, address := range slices.Concat(public, private) {
		if want := slices.Contains(public, address); e.allows(address) != want {
			t.Errorf("by the rule for https, %s can be reached: %v", address, !want)
		}
	}
}

// The gateway calls providers. What a base URL of its config names inside stays out of reach.
func TestTheGatewayReachesPublicProvidersAlone(t *testing.T) {
	t.Parallel()
	rules := egressOf(t, string(must(os.ReadFile(ofGateway+"/networkpolicy.yaml"))(t)))
	rules[len(rules)-1].reachesPublicAddressesAlone(t)
	for _, rule := range rules[:len(rules)-1] {
		if rule.opensHTTPS() {
			t.Error("another rule allows https")
		}
	}
}

// Pods reach no receiver of webhooks as the policy stands. The rule for receivers lets them reach public addresses by https, and
// neither private networks nor the metadata of a cloud.
func TestReceiversAreReachedOnlyWhereThatIsAllowed(t *testing.T) {
	t.Parallel()
	policy := string(must(os.ReadFile("kubernetes/networkpolicy.yaml"))(t))
	_, after, _ := strings.Cut(policy, "# For webhooks and the jwks_uri of agents and trusted issuers:")
	comment := regexp.MustCompile(`(?m)^    # - to:\n(?:    #   .*\n)+`).FindString(after)
	standing := egressOf(t, policy)
	opened := egressOf(t, strings.Replace(policy, comment, strings.ReplaceAll(comment, "    # ", "    "), 1))
	if len(opened) != len(standing)+1 {
		t.Fatalf("%d rules, want one more than %d", len(opened), len(standing))
	}
	opened[len(opened)-1].reachesPublicAddressesAlone(t)
	for _, rule := range standing {
		for _, address := range slices.Concat(public, private) {
			if rule.allows(address) {
				t.Errorf("without the rule for webhooks, %s can be reached", address)
			}
		}
		if rule.opensHTTPS() {
			t.Error("without the rule for webhooks, https can be reached")
		}
	}
}
