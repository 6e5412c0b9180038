// A saturated TCP flow in ns-3, over a path like that of bench's case hosts-1flow: two hosts, two routers, a satellite.
// Prints what a simulated second takes of the processor, the best tenth, and Mb/s delivered, once the line is full.
//
// ns-3 knows packets: a line carries one in the time of its cells. So both simulate as many segments a second.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "ns3_run.hpp"

using namespace ns3;

namespace {

constexpr int PARTS = 10;

Ptr<PacketSink> sink;
std::vector<double> cpu;
std::vector<uint64_t> octets;

void look() {
    cpu.push_back(bench::cpu_s());
    octets.push_back(sink->GetTotalRx());
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) return std::fputs("BEGIN SECONDS\n", stderr), 2;
    const double begin = std::atof(arguments[1]), seconds = std::atof(arguments[2]);
    bench::set_tcp();

    NodeContainer nodes(4);
    InternetStackHelper().Install(nodes);
    PointToPointHelper line = bench::line_of(bench::OC3);
    Ipv4AddressHelper addresses("10.0.1.0", "255.255.255.0");
    Ipv4Address to;
    for (uint32_t k = 0; k < 3; ++k) {
        line.SetChannelAttribute("Delay", TimeValue(MilliSeconds(k == 1 ? 267 : 0)));
        const NetDeviceContainer ends = line.Install(nodes.Get(k), nodes.Get(k + 1));
        to = addresses.Assign(ends).GetAddress(1);
        addresses.NewNetwork();
        TrafficControlHelper().Uninstall(ends);  // the device's queue alone
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    const InetSocketAddress address(to, 5001);
    PacketSinkHelper receiver("ns3::TcpSocketFactory", address);
    sink = DynamicCast<PacketSink>(receiver.Install(nodes.Get(3)).Get(0));
    BulkSendHelper sender("ns3::TcpSocketFactory", address);
    sender.SetAttribute("SendSize", UintegerValue(65536));
    sender.Install(nodes.Get(0));
    for (int part = 0; part <= PARTS; ++part) Simulator::Schedule(Seconds(begin + seconds * part / PARTS), look);
    Simulator::Stop(Seconds(begin + seconds + 1e-9));
    Simulator::Run();

    double best = cpu[1] - cpu[0];
    for (int part = 1; part < PARTS; ++part) best = std::min(best, cpu[part + 1] - cpu[part]);
    std::printf("{\"ratio\": %.6f, \"best_ratio\": %.6f, \"goodput_mbps\": %.6f}\n", (cpu.back() - cpu[0]) / seconds,
                best * PARTS / seconds, double(octets.back() - octets[0]) * 8 / seconds / 1e6);
    Simulator::Destroy();
}
