package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
)

// bridgeAlias begins the alias of each bridge of a real node; the directory of
// its cluster follows. So the bridges themselves tell which clusters had a node.
const bridgeAlias = "devcluster "

// createBridge creates the bridge of the cluster's pods with an address of its
// own, which it returns. It first removes what is left of clusters that ended
// without being asked.
func createBridge(l layout) (*net.IPNet, error) {
	if err := sweepOthers(); err != nil {
		return nil, err
	}
	address, err := freeSubnet()
	if err != nil {
		return nil, err
	}
	bridge := &netlink.Bridge{LinkAttrs: netlink.NewLinkAttrs()}
	bridge.Name = l.realName()
	if err := netlink.LinkAdd(bridge); err != nil {
		return nil, fmt.Errorf("creating the network bridge %s: %w", bridge.Name, err)
	}
	for _, step := range []func() error{
		func() error { return netlink.LinkSetAlias(bridge, bridgeAlias+l.dir) },
		func() error { return netlink.AddrAdd(bridge, &netlink.Addr{IPNet: address}) },
		func() error { return netlink.LinkSetUp(bridge) },
	} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("setting up the network bridge %s: %w", bridge.Name, err)
		}
	}
	return address, nil
}

// freeSubnet gives the first address of a network that no interface has.
func freeSubnet() (*net.IPNet, error) {
	taken, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("listing the network's addresses: %w", err)
	}
	for i := range 256 {
		candidate := &net.IPNet{IP: net.IPv4(10, 245, byte(i), 1).To4(), Mask: net.CIDRMask(24, 32)}
		free := true
		for _, a := range taken {
			if used, ok := a.(*net.IPNet); ok && (candidate.Contains(used.IP) || used.Contains(candidate.IP)) {
				free = false
			}
		}
		if free {
			return candidate, nil
		}
	}
	return nil, errors.New("no network in 10.245.0.0/16 is free for pods")
}

// sweepOthers removes what is left of real nodes whose clusters have ended.
func sweepOthers() error {
	links, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("listing the network's interfaces: %w", err)
	}
	for _, link := range links {
		dir, ours := strings.CutPrefix(link.Attrs().Alias, bridgeAlias)
		if !ours {
			continue
		}
		gone := layout{dir: dir}
		if alive, err := gone.alive(); err != nil || alive {
			continue // it belongs to another process, or can't be read
		}
		if err := sweepNode(gone); err != nil {
			return err
		}
	}
	return nil
}

// deleteBridge deletes the bridge of the cluster's pods, if there is one.
func deleteBridge(l layout) error {
	link, err := netlink.LinkByName(l.realName())
	var missing netlink.LinkNotFoundError
	if errors.As(err, &missing) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for the network bridge %s: %w", l.realName(), err)
	}
	if err := netlink.LinkDel(link); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("deleting the network bridge %s: %w", l.realName(), err)
	}
	return nil
}
