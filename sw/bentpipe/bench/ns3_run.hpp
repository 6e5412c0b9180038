// What the programs for ns-3 have in common: settings of TCP, and lines that take as long for a packet as for its cells.
#pragma once
#include <chrono>
#include <cstdint>
#include <ctime>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

namespace bench {

constexpr uint32_t SEGMENT = 9140, MTU = 9180, CELLS = 192, PPP = 2;
constexpr uint32_t BUFFER = 10 << 20;
constexpr double OC3 = 149.76e6;  // b/s of cells

// Linux's Reno without SACK and timestamps, from a window of one segment on; windows of 10 MiB.
inline void set_tcp() {
    using namespace ns3;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpLinuxReno::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(BUFFER));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(BUFFER));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(false));
}

// A line that carries a packet of the MTU in the time of its cells, with so many b/s of cells.
inline ns3::PointToPointHelper line_of(double cells_bps) {
    using namespace ns3;
    PointToPointHelper line;
    line.SetDeviceAttribute("DataRate", DataRateValue(uint64_t(cells_bps * (MTU + PPP) / (CELLS * 53))));
    line.SetDeviceAttribute("Mtu", UintegerValue(MTU));
    line.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("100000p"));
    return line;
}

// Seconds of the processor so far, and by a steady clock.
inline double cpu_s() { return double(std::clock()) / CLOCKS_PER_SEC; }
inline double elapsed_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace bench
