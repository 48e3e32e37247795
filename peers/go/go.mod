module headway/peers

go 1.22
