#pragma once
constant float beside = 4.0;
