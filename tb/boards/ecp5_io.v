// The cells of an ECP5 that LiteEth uses at RGMII pins, without their delays.

module DELAYG #(parameter DEL_MODE = "", parameter DEL_VALUE = 0) (input A, output Z);
    assign Z = A;
endmodule

module ODDRX1F (input SCLK, input RST, input D0, input D1, output Q);
    reg high = 0, low = 0;
    always @(posedge SCLK) begin
        high <= D0;
        low <= D1;
    end
    assign Q = SCLK ? high : low;
endmodule

module IDDRX1F (input SCLK, input RST, input D, output reg Q0, output reg Q1);
    reg high = 0, low = 0;
    always @(negedge SCLK) low <= D;
    always @(posedge SCLK) begin
        high <= D;
        Q0 <= high;
        Q1 <= low;
    end
endmodule

module FD1S3BX (input CK, input D, input PD, output reg Q);
    always @(posedge CK or posedge PD)
        if (PD) Q <= 1;
        else Q <= D;
endmodule
