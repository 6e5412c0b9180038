// AAL5 over an STS-3c line in plain Verilog: packets in, packets out, all streams AXI4-Stream, registers AXI4-Lite.
//
//   bentpipe rtl aal5-segmenter -o aal5_segmenter.v
//   bentpipe rtl aal5-reassembler -o aal5_reassembler.v
//   bentpipe rtl sonet-terminal --bus axi-lite -o sonet_terminal.v
//   iverilog -o design aal5_over_sonet.v aal5_segmenter.v aal5_reassembler.v sonet_terminal.v
//
// The ports are those of `bentpipe rtl CORE --guide`. One octet of the line goes in each clock, at 19.44 MHz.

module aal5_over_sonet (
    input         clk,
    input         rst,
    // PDUs to be sent: the cell header is given with the first word
    input         tx_tvalid,
    output        tx_tready,
    input  [31:0] tx_tdata,
    input  [3:0]  tx_tkeep,
    input         tx_tlast,
    input  [31:0] tx_header,
    // PDUs received, with padding and trailer; rx_tuser[15:0] is the length, [34:32] the verdict, 0 if it is good
    output        rx_tvalid,
    input         rx_tready,
    output [31:0] rx_tdata,
    output [3:0]  rx_tkeep,
    output        rx_tlast,
    output [35:0] rx_tuser,
    // The line
    output [7:0]  line_out,
    input  [7:0]  line_in,
    // Registers of the terminal: bentpipe rtl sonet-terminal --registers
    input  [21:0] csr_araddr,
    input         csr_arvalid,
    output        csr_arready,
    output [31:0] csr_rdata,
    output        csr_rvalid,
    input         csr_rready
);

  wire sent_valid, sent_ready, sent_last, got_valid, got_ready, got_last, got_error;
  wire [31:0] sent_data, got_data;

  bentpipe_aal5_segmenter segmenter (
      .clk(clk),
      .rst(rst),
      .i_tvalid(tx_tvalid),
      .i_tready(tx_tready),
      .i_tdata(tx_tdata),
      .i_tkeep(tx_tkeep),
      .i_tlast(tx_tlast),
      .i_tdest(tx_header),
      .i_tuser(17'd0),
      .o_tvalid(sent_valid),
      .o_tready(sent_ready),
      .o_tdata(sent_data),
      .o_tlast(sent_last)
  );

  bentpipe_sonet_terminal terminal (
      .clk(clk),
      .rst(rst),
      .enable(1'b1),
      .signal(1'b1),
      .line_out(line_out),
      .line_in(line_in),
      .i_tvalid(sent_valid),
      .i_tready(sent_ready),
      .i_tdata(sent_data),
      .i_tlast(sent_last),
      .i_tkeep(4'hf),
      .i_tdest(1'b0),
      .i_tuser(1'b0),
      .o_tvalid(got_valid),
      .o_tready(got_ready),
      .o_tdata(got_data),
      .o_tlast(got_last),
      .o_tuser(got_error),
      .csr_araddr(csr_araddr),
      .csr_arvalid(csr_arvalid),
      .csr_arready(csr_arready),
      .csr_rdata(csr_rdata),
      .csr_rvalid(csr_rvalid),
      .csr_rready(csr_rready),
      .csr_awvalid(1'b0),
      .csr_awaddr(22'd0),
      .csr_wvalid(1'b0),
      .csr_wdata(32'd0),
      .csr_wstrb(4'h0),
      .csr_bready(1'b1)
  );

  bentpipe_aal5_reassembler reassembler (
      .clk(clk),
      .rst(rst),
      .i_tvalid(got_valid),
      .i_tready(got_ready),
      .i_tdata(got_data),
      .i_tlast(got_last),
      .i_tkeep(4'hf),
      .i_tdest(4'd0),  // all cells are of one VC; the core `lookup` finds others
      .i_tuser(got_error),
      .o_tvalid(rx_tvalid),
      .o_tready(rx_tready),
      .o_tdata(rx_tdata),
      .o_tkeep(rx_tkeep),
      .o_tlast(rx_tlast),
      .o_tuser(rx_tuser)
  );

endmodule
