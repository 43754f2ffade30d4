package outbound

import (
	"errors"
	"net"
	"net/netip"
	"testing"
)

func TestOnlyPublicAddressesAreConnectedTo(t *testing.T) {
	t.Parallel()
	control := controlPublic(net.InterfaceAddrs)
	for _, address := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.254", "127.0.0.1", "127.255.255.254",
		"169.254.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.0.1",
		"198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0:127.0.0.1", "::127.0.0.1", "::7f00:1",
		"64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "2002:a9fe:a9fe::1",
		"3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "2606:4700::1111%eth0",
	} {
		if isPublic(netip.MustParseAddr(address)) {
			t.Errorf("%s is public", address)
		}
		if err := control("tcp", netip.AddrPortFrom(netip.MustParseAddr(address), 443).String(), nil); err == nil {
			t.Errorf("a socket may connect to %s", address)
		}
	}
	for _, address := range []string{
		"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255",
		"198.17.255.255", "223.255.255.255", "::ffff:8.8.8.8", "2606:4700::1111", "2a00:1450::1", "2001:4860:4860::8888",
	} {
		if !isPublic(netip.MustParseAddr(address)) {
			t.Errorf("%s is not public", address)
		}
	}
	for _, address := range []string{"", "8.8.8.8", "example.com:443", "[::1]"} {
		if err := control("tcp", address, nil); err == nil {
			t.Errorf("a socket may connect to %q", address)
		}
	}
}

// A firewall at the edge of the network does not stand between this machine and its own public addresses.
func TestThisMachinesPublicAddressesAreNotConnectedTo(t *testing.T) {
	t.Parallel()
	own := func() ([]net.Addr, error) {
		return []net.Addr{
			&net.IPNet{IP: net.ParseIP("8.8.4.4"), Mask: net.CIDRMask(24, 32)}, &net.IPNet{IP: net.ParseIP("2a00:1450::7"), Mask: net.CIDRMask(64, 128)},
		}, nil
	}
	unknown := func() ([]net.Addr, error) { return nil, errors.New("no netlink") }
	for _, test := range []struct {
		interfaces func() ([]net.Addr, error)
		address    string
		want       error
	}{
		{own, "8.8.4.4:443", ErrPrivateAddress}, {own, "[::ffff:8.8.4.4]:443", ErrPrivateAddress}, {own, "[2a00:1450::7]:443", ErrPrivateAddress},
		{own, "8.8.4.5:443", nil}, {own, "[2a00:1450::8]:8443", nil}, {unknown, "8.8.4.5:443", ErrPrivateAddress},
		{own, "8.8.4.5:22", ErrPort}, {own, "8.8.4.5:1023", ErrPort}, {own, "8.8.4.5:1024", nil}, {own, "8.8.4.4:22", ErrPrivateAddress},
	} {
		if err := controlPublic(test.interfaces)("tcp", test.address, nil); err != test.want {
			t.Errorf("%s: %v, want %v", test.address, err, test.want)
		}
	}
}

// The sender asks the machine for its addresses with each connection.
func TestTheSenderKnowsThisMachinesAddresses(t *testing.T) {
	t.Parallel()
	all, err := net.InterfaceAddrs()
	if err != nil || len(all) == 0 {
		t.Fatalf("%v, %v", all, err)
	}
	for _, one := range all {
		if own, valid := netip.AddrFromSlice(one.(*net.IPNet).IP); !valid || !isOwn(own.Unmap(), net.InterfaceAddrs) {
			t.Errorf("%s is not taken for an address of this machine", one)
		}
	}
}
