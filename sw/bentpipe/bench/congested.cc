// The three transfers of acts-3flows in ns-3: three hosts on OC-3c send to one on OC-12c, through a switch, a satellite's line
// of OC-3c that leads back to the same switch, and its buffer of 8192 cells. Prints seconds of the processor, elapsed and
// simulated ones until all have arrived, and the octets, as JSON.
//
// The switch is two routers, one before the satellite's line and one behind it. Each host has a line to the first and one
// from the second, so that data and acknowledgements take the line in one direction, as in the experiment. EPD admits a frame
// while less than 0.9 of the buffer is used: here a packet is admitted while fewer octets than those of as many cells wait.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "ns3_run.hpp"

using namespace ns3;

namespace {

constexpr uint32_t SOURCES = 3, SINK = SOURCES, HOSTS = SOURCES + 1;
constexpr double CELLS_ADMITTED = 0.9 * 8192 + bench::CELLS;  // the last packet that is admitted included
constexpr double BIT_ERRORS = 1e-11;

uint64_t octets = 0, octets_due = 0;

void received(Ptr<const Packet> packet, const Address&) {
    octets += packet->GetSize();
    if (octets >= octets_due) Simulator::Stop();
}

// The ends of a new line, with the device's queue alone; the addresses are those of a network of its own.
Ipv4InterfaceContainer join(Ptr<Node> one, Ptr<Node> two, PointToPointHelper& line, Ipv4AddressHelper& addresses) {
    const NetDeviceContainer ends = line.Install(one, two);
    const Ipv4InterfaceContainer found = addresses.Assign(ends);
    addresses.NewNetwork();
    TrafficControlHelper().Uninstall(ends);
    return found;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) return std::fputs("OCTETS of each flow\n", stderr), 2;
    const uint64_t size = std::strtoull(arguments[1], nullptr, 10);
    octets_due = SOURCES * size;
    bench::set_tcp();

    NodeContainer hosts(HOSTS), routers(2);
    InternetStackHelper().Install(hosts);
    InternetStackHelper().Install(routers);
    Ipv4AddressHelper addresses("10.0.1.0", "255.255.255.0");
    const Ipv4StaticRoutingHelper routing;
    const auto routes = [&routing](Ptr<Node> node) { return routing.GetStaticRouting(node->GetObject<Ipv4>()); };

    PointToPointHelper satellite = bench::line_of(bench::OC3);
    satellite.SetChannelAttribute("Delay", TimeValue(MilliSeconds(267)));
    const auto waiting = uint32_t(CELLS_ADMITTED / bench::CELLS * (bench::MTU + bench::PPP));
    satellite.SetQueue("ns3::DropTailQueue", "MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::BYTES, waiting)));
    const Ipv4InterfaceContainer loop = join(routers.Get(0), routers.Get(1), satellite, addresses);
    const auto errors = CreateObjectWithAttributes<RateErrorModel>("ErrorRate", DoubleValue(BIT_ERRORS), "ErrorUnit",
                                                                   EnumValue(RateErrorModel::ERROR_UNIT_BIT));
    routers.Get(1)->GetDevice(1)->SetAttribute("ReceiveErrorModel", PointerValue(errors));
    routes(routers.Get(0))->SetDefaultRoute(loop.GetAddress(1), 1);

    // A host is known by the address of its line from the second router: the first one sends all over the satellite.
    std::vector<InetSocketAddress> ends;
    for (uint32_t k = 0; k < HOSTS; ++k) {
        PointToPointHelper line = bench::line_of(k == SINK ? 4 * bench::OC3 : bench::OC3);
        const Ipv4InterfaceContainer there = join(hosts.Get(k), routers.Get(0), line, addresses);
        const Ipv4InterfaceContainer back = join(routers.Get(1), hosts.Get(k), line, addresses);
        routes(hosts.Get(k))->SetDefaultRoute(there.GetAddress(1), 1);
        ends.emplace_back(back.GetAddress(1), 5001);
    }

    PacketSinkHelper receiver("ns3::TcpSocketFactory", ends[SINK]);
    receiver.Install(hosts.Get(SINK)).Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(received));
    BulkSendHelper sender("ns3::TcpSocketFactory", ends[SINK]);
    sender.SetAttribute("SendSize", UintegerValue(65536));
    sender.SetAttribute("MaxBytes", UintegerValue(size));
    for (uint32_t k = 0; k < SOURCES; ++k) {
        sender.SetAttribute("Local", AddressValue(ends[k]));
        sender.Install(hosts.Get(k));
    }
    const double cpu = bench::cpu_s(), elapsed = bench::elapsed_s();
    Simulator::Run();
    std::printf("{\"cpu_s\": %.6f, \"elapsed_s\": %.6f, \"simulated_s\": %.6f, \"octets\": %llu}\n", bench::cpu_s() - cpu,
                bench::elapsed_s() - elapsed, Simulator::Now().GetSeconds(), static_cast<unsigned long long>(octets));
    Simulator::Destroy();
}
